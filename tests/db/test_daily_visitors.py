"""Reading the table of visitors."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from django_hitcount import conf
from django_hitcount.counters.days import day_of
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.visitors import DayInTable
from django_hitcount.db import daily_visitors
from django_hitcount.db.tables import DailyVisitors, SeenVisitor
from tests.app.models import Article


def set_collation(collation: str) -> None:
    with connection.cursor() as cursor:
        for table in (DailyVisitors, SeenVisitor):
            cursor.execute(
                f"ALTER TABLE {table._meta.db_table} "
                f"MODIFY visitor_key varchar({conf.VISITOR_KEY_MAX_LENGTH}) {collation} NOT NULL"
            )


@pytest.mark.skipif(connection.vendor != "mysql", reason="others have no collation of a connection")
@pytest.mark.django_db(transaction=True)
def test_the_connection_may_have_another_collation():
    key = CounterKey(ContentType.objects.get_for_model(Article).pk, "1", "views")
    today = day_of()
    DailyVisitors.objects.create(
        **key._asdict(), day=today, visitor_key="v1-never-0", count=3, sketch=b"sketch"
    )
    set_collation("CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci")
    try:
        found = daily_visitors.read_days([key], today, today, merged_from=today)
    finally:
        set_collation("")

    assert [*found.values()] == [DayInTable(3, b"sketch", 0)]
