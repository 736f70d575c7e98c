"""Statements that read more than fits into memory, or several tables."""

from __future__ import annotations

import tracemalloc

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Max, Sum, Value

from django_hitcount.counters.days import day_of
from django_hitcount.db.sql import read_together, spool_rows
from django_hitcount.db.tables import DailyHitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.visiting import request_of

# Made of digits, so that no table is needed: 0 to 9,999 and 0 to 99,999.
DIGITS = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
NUMBERS = {
    10 ** len(names): "SELECT "
    + " + ".join(f"{10**place} * {name}.n" for place, name in enumerate(names))
    + f" AS number, %s AS text FROM {', '.join(f'({DIGITS}) {name}' for name in names)}"
    for names in ("abcd", "abcde")
}

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(size):
    return (row for rows in spool_rows(NUMBERS[size], ["x" * 100]) for row in rows)


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


def test_several_tables_are_read_together(django_assert_num_queries):
    """Each row comes back as its own queryset returns it: texts, numbers, days and moments."""
    article, user = Article.objects.create(title="Tea"), User.objects.create(username="ann")
    record_hits([article], request_of(1))
    record_hits([article], request_of(1), amount=2)
    flush_hits()
    selects = [
        User.objects.values_list("username", "date_joined"),
        DailyHitSlot.objects.values_list("object_id", "counter", "day").annotate(sum=Sum("hits")),
        Article.objects.none().values_list("pk"),
        DailyHitSlot.objects.annotate(of_all=Value(1)).values_list("of_all").annotate(Max("day")),
        Article.objects.values_list("pk", "title"),
    ]

    with django_assert_num_queries(1):
        found = read_together(*selects)
    assert found == [
        [("ann", user.date_joined)],
        [(str(article.pk), "views", day_of(), 3)],
        [],
        [(1, day_of())],
        [(article.pk, "Tea")],
    ]
