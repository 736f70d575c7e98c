"""Tables as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

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
