"""The tables of reports as CSV, for spreadsheets: numbers have no separators."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from django.utils.text import slugify
from django.utils.translation import gettext as _

from django_hitcount.reports.periods import Period
from django_hitcount.reports.rows import Days, ObjectRow, RefusedRow

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
            *(*more, _("Hits before"), _("Change")),
        ],
        (
            (
                *(row.number, row.name, row.model_name, row.key[1], row.hits),
                *((_decimal(row.share), row.visitors) if has_shares else ()),
                *(row.before, row.more),
            )
            for row in rows
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
    return f"{slugify(name)}.csv"
