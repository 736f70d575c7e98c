from __future__ import annotations

import csv
import datetime
import io

import pytest

from django_hitcount.reports.csv import BYTE_ORDER_MARK, defuse, write_csv


def test_a_spreadsheet_reads_what_was_written():
    title = 'Tea, "hot"\nand cold: Grüße'
    text = write_csv(["Day", "Object"], [(datetime.date(2026, 11, 22), title), (3, None)])

    assert text.startswith(BYTE_ORDER_MARK)
    rows = [*csv.reader(io.StringIO(text.encode().decode("utf-8-sig"), newline=""))]
    assert rows == [["Day", "Object"], ["2026-11-22", title], ["3", ""]]


@pytest.mark.parametrize(
    "title",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "=HYPERLINK(1)"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"),
    ],
)
def test_no_title_is_a_formula(title):
    assert defuse(title) == f"'{title}"


@pytest.mark.parametrize("cell", ["tea = coffee", "1-1", "", -5, 0, None])
def test_other_cells_stay_as_they_are(cell):
    assert defuse(cell) == cell
