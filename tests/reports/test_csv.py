from __future__ import annotations

import csv
import datetime
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_hitcount.reports.rows import BYTE_ORDER_MARK, defuse, write_csv


def written(header, rows):
    return "".join(write_csv(header, rows))


def test_a_spreadsheet_reads_what_was_written():
    title = 'Tea, "hot"\nand cold: Grüße'
    text = written(["Day", "Object"], [(datetime.date(2026, 11, 22), title), (3, None)])

    assert text.startswith(BYTE_ORDER_MARK)
    rows = [*csv.reader(io.StringIO(text.encode().decode("utf-8-sig"), newline=""))]
    assert rows == [["Day", "Object"], ["2026-11-22", title], ["3", ""]]


@pytest.mark.parametrize(
    "title",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", " =1", "=HYPERLINK(1)"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"),
    ],
)
def test_no_title_is_a_formula(title):
    assert defuse(title) == f"'{title}"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("x;=cmd|' /C calc'!A0;y", "x;'=cmd|' /C calc'!A0;y"),
        ("\t=1", "'\t'=1"),
        ("'=1;'a", "''=1;'a"),
        ('a\n "@b";\u3000+c', "a\n' \"@b\";'\u3000+c"),
    ],
)
def test_no_part_of_a_title_is_a_formula(title, expected):
    assert defuse(title) == expected


PIECES = [*"=+-@\uff1d;,\t\r\n \"'ab", "x;=cmd|' /C calc'!A0;y"]
TITLES = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
ROWS = st.lists(st.tuples(TITLES, st.integers(-9, 99), TITLES, st.none(), TITLES), max_size=4)
FORMULA = re.compile(r"\s*[=+@\uff1d-]")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["", None])
@given(ROWS)
@example([("Tea", 1, "x;=cmd|' /C calc'!A0;y", None, "x;")])
def test_no_reading_of_a_file_has_a_formula(delimiter, newline, rows):
    text = written(["A", "B", "C", "D", "E"], [(1, *row) for row in rows])
    read = csv.reader(io.StringIO(text.lstrip(BYTE_ORDER_MARK), newline), delimiter=delimiter)
    cells = [cell for row in read for cell in row]

    assert [cell for cell in cells if FORMULA.match(cell) and not is_number(cell)] == []


def is_number(cell):
    return bool(re.fullmatch(r"-?\d+", cell))


def test_each_text_is_in_quotes():
    text = written(["Day"], [("x;y", 5), (datetime.date(2026, 11, 22), None)])

    assert text.splitlines()[1:] == ['"x;y",5', '"2026-11-22",""']


@pytest.mark.parametrize("cell", ["tea = coffee", "1-1", "a; b", "a,=b", "", -5, 0, None])
def test_other_cells_stay_as_they_are(cell):
    assert defuse(cell) == cell
