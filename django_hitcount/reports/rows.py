"""
What reports show: typed rows, the numbers that are calculated from them, and their tables as CSV.

CSV is for spreadsheets: numbers have no separators.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import NamedTuple

from django.db.models import Model
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.reports.charts import BarChart, bar_chart
from django_hitcount.reports.selection import Period, Selection

BYTE_ORDER_MARK = "\ufeff"
"""
Begins a file. Without it, Excel reads UTF-8 as the code page of the computer, and spoils titles.

LibreOffice and Google Sheets skip it. In Python, read the file as ``utf-8-sig``.
"""

STARTS_OF_FORMULAS = "=+@\uff1d\uff0b\uff0d\uff20-"
"""With their wide forms, which East Asian spreadsheets read alike."""

FORMULAS = re.compile(
    rf"""
    ^ (?= [\t\r\n] )
    | (?: ^ | (?<= [;\t\r\n] ) )  # A cell begins here, if not commas separate cells.
    (?= [\s"]* [{STARTS_OF_FORMULAS}] )
    """,
    re.VERBOSE,
)
"""Where a cell of a text would begin as a formula does."""

Cell = str | int | datetime.date | None

ROWS_AT_A_TIME = 500

Days = Mapping[datetime.date, int]
"""Hits by day, in order and without gaps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectRow:
    """An object of a ranking."""

    key: ObjectKey
    name: str
    obj: Model | None
    """None if it is deleted, or was not loaded."""

    model_name: str
    hits: int
    before: int | None
    """The hits of the period before; None for today, which is not over."""

    share: float | None = None
    """Percent of all hits of the period, if the table shows it."""

    visitors: int | None = None
    """None if nobody counted them, if they are not shown, or cannot be read now."""

    @property
    def more(self) -> int | None:
        """How many more hits than before."""
        return None if self.before is None else self.hits - self.before

    @property
    def change(self) -> float | None:
        """How many percent more hits than before; None if there were none to compare with."""
        return change_of(self.hits, self.before)


class RefusedRow(NamedTuple):
    """The hits that were refused for one reason."""

    refusal: str
    reason: str
    hits: int
    share: float | None
    """Percent of all refused hits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All numbers of a report."""

    selection: Selection
    hits: Days
    before: Days
    today: int | None
    """The hits of today so far, beside a period that is over; None if it ended ten years ago."""

    top: Sequence[ObjectRow]
    rising: Sequence[ObjectRow]
    falling: Sequence[ObjectRow]
    is_certain: bool
    """Whether no other object rose or fell as much as these."""

    refused: Sequence[RefusedRow]

    @property
    def total(self) -> int:
        return sum(self.hits.values())

    @property
    def total_before(self) -> int | None:
        """None for today, which is not over."""
        return sum(self.before.values()) if self.before else None

    @property
    def change(self) -> float | None:
        """How many percent more hits than before; None if there were none to compare with."""
        return change_of(self.total, self.total_before)

    @property
    def per_day(self) -> float:
        """The mean of all days: two significant digits below 10, else a whole number."""
        mean = self.total / len(self.hits)
        short = float(f"{mean:.2g}")
        return short if abs(short) < 10 and not short.is_integer() else round(mean)

    @property
    def best(self) -> tuple[datetime.date, int]:
        """The day with the most hits, the newest of several, and its hits."""
        return max(self.hits.items(), key=lambda item: (item[1], item[0]))

    @property
    def lacks_visitors(self) -> bool:
        """Whether nobody counted the visitors of some of the objects."""
        return None in [row.visitors for row in self.top]

    @property
    def refused_hits(self) -> int:
        return sum(row.hits for row in self.refused)

    @property
    def refused_share(self) -> float | None:
        """
        Percent of all hits of the period, counted or refused. None in a report on one model:
        refused hits are counted for all models together.
        """
        if self.selection.model:
            return None
        return share_of(self.refused_hits, self.refused_hits + self.total)

    @property
    def chart(self) -> BarChart:
        return bar_chart(self.hits, self.before if self.has_before else None)

    @property
    def has_before(self) -> bool:
        """Whether there are hits to compare with."""
        return any(self.before.values())

    @property
    def is_empty(self) -> bool:
        """Whether no hits were counted, neither in the period nor before."""
        return not any(self.hits.values()) and not self.has_before


def pick_days(days: Days, period: Period | None) -> Days:
    """Return the days of a period; none without one."""
    return {day: days[day] for day in period.list_days()} if period else {}


def change_of(hits: int, before: int | None) -> float | None:
    """Return how many percent more hits there are; None if there were none before."""
    return 100 * (hits - before) / before if before and before > 0 else None


def share_of(part: int, whole: int) -> float | None:
    """Return the percentage; None if there is none, as of hits that were taken back."""
    return 100 * part / whole if 0 <= part <= whole and whole else None


def refused_rows(refused: Mapping[str, int], reasons: Mapping[str, str]) -> list[RefusedRow]:
    """Return the rows of refused hits by refusal, the most frequent first."""
    whole = sum(refused.values())
    return [
        RefusedRow(refusal, reasons.get(refusal, ""), hits, share_of(hits, whole))
        for refusal, hits in sorted(refused.items(), key=lambda item: (-item[1], item[0]))
    ]


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """
    Yield a table in pieces, in the dialect that every spreadsheet reads: commas, quotes, CR LF.

    Each text is in quotes, so that a spreadsheet that separates cells by semicolons, too, keeps a
    title in one.

    Numbers have no separators, and days are like 2026-11-22, so that spreadsheets can calculate
    with them whatever the language.
    """
    yield BYTE_ORDER_MARK + _write_rows([header])
    rest = iter(rows)
    while some := [*islice(rest, ROWS_AT_A_TIME)]:
        yield _write_rows(some)


def _write_rows(rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([[defuse(cell) for cell in row] for row in rows])
    return text.getvalue()


def defuse(cell: Cell) -> Cell:
    """
    Return a cell that no spreadsheet takes for a formula.

    Titles are written by strangers on some sites, and ``=HYPERLINK(...)`` would run on the computer
    of whoever opens the file. An apostrophe before it says that it is text (OWASP, CSV Injection).

    So it does within a title: in German or French, spreadsheets separate cells by semicolons alone,
    and quotes do not hold a title together that begins after a comma.
    """
    return FORMULAS.sub("'", cell) if isinstance(cell, str) else cell


def days_csv(hits: Days, before: Days) -> Iterator[str]:
    """Write the hits of each day, beside those of the same day of the period before."""
    days = zip_longest(hits.items(), before.items(), fillvalue=())
    return write_csv(
        [_("Day"), _("Hits"), _("Day of the period before"), _("Hits before")],
        [(*day, *day_before) for day, day_before in days],
    )


def objects_csv(rows: Iterable[ObjectRow], *, has_shares: bool) -> Iterator[str]:
    """Write the objects of a ranking, perhaps with their shares and their visitors."""
    more = [_("Share in percent"), _("Visitors")] if has_shares else []
    return write_csv(
        [
            *(_("Rank"), _("Object"), _("Model"), _("Primary key"), _("Hits")),
            *(*more, _("Hits before"), pgettext("of hits", "Change")),
        ],
        (
            (
                *(number, row.name, row.model_name, row.key[1], row.hits),
                *((_decimal(row.share), row.visitors) if has_shares else ()),
                *(row.before, row.more),
            )
            for number, row in enumerate(rows, start=1)
        ),
    )


def refused_csv(rows: Iterable[RefusedRow]) -> Iterator[str]:
    """Write the refused hits by reason."""
    return write_csv(
        [_("Refusal"), _("Reason"), _("Hits"), _("Share in percent")],
        [(row.refusal, row.reason, row.hits, _decimal(row.share)) for row in rows],
    )


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def file_name(period: Period, *parts: str) -> str:
    """Return the name of a file: what it is about, without empty parts, and the days."""
    # slugify() leaves ASCII letters, digits, "_" and single hyphens. A model may have any letters.
    name = "-".join(["hits", *parts, f"{period.first_day}", f"{period.last_day}"])
    return f"{slugify(name.replace('.', '-'))}.csv"
