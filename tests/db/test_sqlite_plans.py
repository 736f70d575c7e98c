"""SQLite finds the few rows that are not compacted by an index, however many others there are."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hitcount.counters.days import day_of
from django_hitcount.counters.rankings import Scope, weigh_days
from django_hitcount.db import sums
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.rankings import compare_objects
from django_hitcount.maintenance.compaction import compact
from django_hitcount.rankings import popular, trending
from django_hitcount.recording import record_hit
from tests.app.models import Article

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="the plans of its planner"),
]


@pytest.fixture(autouse=True)
def no_statistics() -> None:
    """Forget what an ANALYZE of another test has found, in tables that are empty by now."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS sqlite_stat1")
        cursor.execute("DROP TABLE IF EXISTS sqlite_stat4")
        cursor.execute("ANALYZE sqlite_schema")  # Reads statistics again: there are none.


SLOTS = re.compile(r"(SCAN|SEARCH) (hit|django_hitcount_\w*hitslot)\b")
"""A step that reads a table of hits; ``hit`` is the alias in a ranking."""

FEW_ROWS = re.compile(
    r"INDEX hitcount_\w+_(compact|slot)"  # Only has the rows that are not compacted.
    r"|content_type_id=\? AND object_id=\?"  # Of one object.
    r"|AND is_compacted=\?\)"  # The first ones of a list that the index sorts.
    r"|rowid=\?"
)


def report() -> object:
    today, yesterday = day_of(), day_of() - datetime.timedelta(days=1)
    models = [content_type_id_of(Article)]
    weights = weigh_days([today])
    scope = Scope(content_type_ids=models, counter="views", weights=weights, before=[yesterday])
    return compare_objects(scope, 10)


def read_month(content_type_id: int | None) -> object:
    days = sums.DayRange(day_of() - datetime.timedelta(days=29), day_of())
    return sums.read_days_of_model(content_type_id, days, counter="views")


@pytest.mark.parametrize(
    "work",
    [
        lambda: popular(Article, 10),
        lambda: popular(Article, 10, days=1),
        lambda: popular(Article, 10, days=30),
        lambda: trending(Article, 10),
        report,
        lambda: read_month(content_type_id_of(Article)),
        lambda: read_month(None),
        compact,
    ],
    ids=["all time", "today", "month", "trending", "report", "model", "all models", "compact"],
)
def test_no_statement_reads_all_rows(work: Callable[[], object]):
    record_hit(Article.objects.create(title="Tea"))
    with CaptureQueriesContext(connection) as queries:
        work()

    steps = []
    for statement in [query["sql"] for query in queries if "is_compacted" in query["sql"]]:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            steps += [row[3] for row in cursor.fetchall() if SLOTS.match(row[3])]
    assert steps
    assert [step for step in steps if not FEW_ROWS.search(step)] == []
