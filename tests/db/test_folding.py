"""How rows are found that are to be folded."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_hitcount.counters.days import day_of
from django_hitcount.db import folding, slots
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.models import DailyHitSlot
from tests.app.models import Article

ROWS = 2000


@pytest.mark.skipif(connection.vendor != "postgresql", reason="the plan of its planner")
@pytest.mark.django_db
def test_postgresql_finds_rows_by_index_even_if_it_knows_of_few():
    """After the last ANALYZE, a flush may have written many rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {DailyHitSlot._meta.db_table}")
    model, today = content_type_id_of(Article), day_of()
    rows = [(model, str(n), "views", today, 1, 1) for n in range(ROWS)]
    slots.add_to_slots(DailyHitSlot, rows)

    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        folded = folding.fold_rows(DailyHitSlot, after=(), newest=10**9, limit=10)
        read = next(q["sql"] for q in queries.captured_queries if "SKIP LOCKED" in q["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {read}")
            plan = "\n".join(line for (line,) in cursor.fetchall())

    assert len(folded) == 10
    assert "Index Scan using hitcount_daily_compact" in plan


@pytest.mark.django_db(transaction=True)
def test_rows_that_came_after_the_start_are_left():
    model, today = content_type_id_of(Article), day_of()
    add = partial(slots.add_to_slots, DailyHitSlot)
    add([(model, str(n), "views", today, 1, 1) for n in range(3)])
    newest = max(DailyHitSlot.objects.values_list("pk", flat=True))
    add([(model, "9", "views", today, 1, 1)])

    with transaction.atomic():
        folding.fold_rows(DailyHitSlot, after=(), newest=newest, limit=10)

    assert [*DailyHitSlot.objects.filter(slot=1).values_list("object_id", flat=True)] == ["9"]
