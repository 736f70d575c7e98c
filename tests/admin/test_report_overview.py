"""What a report reads of small tables, and of one that is not small."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hitcount.db import slots
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import HitSlot
from django_hitcount.reports import find_models
from tests.app.models import Article

ROWS = 3000


@pytest.mark.skipif(connection.vendor != "postgresql", reason="the plan of its planner")
@pytest.mark.django_db
def test_models_are_found_by_index():
    """Also those of which there are no hits."""
    model = content_type_id_of(Article)
    slots.add_to_slots(HitSlot, [(model, str(n), "views", 0, 1) for n in range(ROWS)])
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {HitSlot._meta.db_table}")

    with CaptureQueriesContext(connection) as queries:
        models = find_models()
    (read,) = (q["sql"] for q in queries.captured_queries if HitSlot._meta.db_table in q["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {read}")
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert [*models.values()] == [Article]
    assert f"Seq Scan on {HitSlot._meta.db_table}" not in plan
