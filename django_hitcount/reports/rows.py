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
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.reports.charts import bar_chart
from django_hitcount.reports.selection import Period

BYTE_ORDER_MARK = "\ufeff"
"""
Begins a file. Without it, Excel reads UTF-8 as the code page of the computer, and spoils titles.

LibreOffice and Google Sheets skip it. In Python, read the file as ``utf-8-sig``.
"""

STARTS_OF_FORMULAS = "=+@\uff1d\uff0b\uff0d\uff20-"
"""With their wide forms, which East Asian spreadsheets read alike."""

_FORMULA = rf"""
    ^ {{}} (?= '* [\t\r\n] )
    | (?: ^ | (?<= [;\t\r\n] ) ) {{}}  # A cell begins here, if not commas separate cells.
    (?= [\s"']* [{STARTS_OF_FORMULAS}] )
    """
"""Where a cell of a text begins as a formula does, perhaps behind apostrophes."""

FORMULAS, DEFUSED = (re.compile(_FORMULA.format(sign, sign), re.VERBOSE) for sign in ("", "'"))
"""Where defuse() puts its apostrophes, and these apostrophes."""

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


def sum_up(hits: Days, before: Days) -> dict[str, Any]:
    """Return what a report says about the hits of a period, and of the period before if any."""
    total = sum(hits.values())
    total_before = sum(before.values()) if before else None
    has_before = any(before.values())
    return {
        "total": total,
        "total_before": total_before,
        "change": change_of(total, total_before),
        "per_day": _round_mean(total / len(hits)),
        # Of several best days, the newest.
        "best": max(hits.items(), key=lambda item: (item[1], item[0])),
        "chart": bar_chart(hits, before if has_before else None),
        "has_before": has_before,
        "is_empty": not any(hits.values()) and not has_before,
    }


def _round_mean(mean: float) -> float:
    """Return two significant digits below 10, else a whole number."""
    short = float(f"{mean:.2g}")
    return short if abs(short) < 10 and not short.is_integer() else round(mean)


def pick_days(days: Days, period: Period | None) -> Days:
    """Return the days of a period; none without one."""
    return {day: days[day] for day in period.list_days()} if period else {}


def change_of(hits: int, before: int | None) -> float | None:
    """Return how many percent more hits there are; None if there were none before."""
    return 100 * (hits - before) / before if before and before > 0 else None


def share_of(part: int, whole: int) -> float | None:
    """Return the percentage; None if there is none, as of hits that were taken back."""
    return 100 * part / whole if 0 <= part <= whole and whole else None


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """
    Yield a table in pieces, in the dialect that every spreadsheet reads: commas, quotes, CR LF.

    Each text is in quotes, so that a spreadsheet that separates cells by semicolons, too, keeps a
    title in one.

    Numbers have no separators, and days are like 2026-11-22, so that spreadsheets can calculate
    with them whatever the language.
    """
    yield BYTE_ORDER_MARK
    lines = chain([header], rows)
    while some := [*islice(lines, ROWS_AT_A_TIME)]:
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([defuse(cell) for cell in line] for line in some)
        yield text.getvalue()


def defuse(cell: Cell) -> Cell:
    """
    Return a cell that no spreadsheet takes for a formula.

    Titles are written by strangers on some sites, and ``=HYPERLINK(...)`` would run on the computer
    of whoever opens the file. An apostrophe before it says that it is text (OWASP, CSV Injection).

    So it does within a title: in German or French, spreadsheets separate cells by semicolons alone,
    and quotes do not hold a title together that begins after a comma. It also comes before other
    apostrophes, so that restore() knows it.
    """
    return FORMULAS.sub("'", cell) if isinstance(cell, str) else cell


def restore(text: str) -> str:
    """Return the text that defuse() was called with."""
    return DEFUSED.sub("", text) if "'" in text else text


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
