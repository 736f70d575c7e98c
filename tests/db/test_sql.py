"""Statements that read more than fits into memory."""

from __future__ import annotations

import tracemalloc

import pytest
from django.db import connection

from django_hitcount.db.sql import spool_rows

# Made of digits, so that no table is needed: 0 to 9,999 and 0 to 99,999.
DIGITS = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
NUMBERS = {
    10 ** len(names): "SELECT "
    + " + ".join(f"{10**place} * {name}.n" for place, name in enumerate(names))
    + f" AS number, %(text)s AS text FROM {', '.join(f'({DIGITS}) {name}' for name in names)}"
    for names in ("abcd", "abcde")
}

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(size):
    return (row for rows in spool_rows(NUMBERS[size], {"text": "x" * 100}) for row in rows)


def test_all_rows_are_read():
    assert sorted(number for number, text in numbers(10_000) if text == "x" * 100) == [
        *range(10_000)
    ]


def test_other_statements_run_while_rows_are_taken():
    rows = numbers(10_000)
    next(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        assert cursor.fetchone() == (7,)

    assert sum(1 for _ in rows) == 9_999


def test_a_reader_that_stops_leaves_nothing_open():
    rows = numbers(10_000)
    next(rows)
    rows.close()

    assert sum(1 for _ in numbers(10_000)) == 10_000


def test_rows_need_no_memory():
    few, many = peak_of(10_000), peak_of(100_000)

    assert many < 1.5 * few


def peak_of(size):
    sum(1 for _ in numbers(size))  # What is imported or cached by the first call is there now.
    tracemalloc.start()
    try:
        assert sum(1 for _ in numbers(size)) == size
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a setting for its poolers")
def test_a_pooler_may_forbid_cursors_of_the_server(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    monkeypatch.setattr(connection, "chunked_cursor", None)

    assert sum(1 for _ in numbers(10_000)) == 10_000
