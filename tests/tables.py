"""The tables: their sums, read without the package, and their collations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import Model, Sum

from django_hitcount.db.tables import DailyHitSlot, HitSlot


def slot_sums(objs: Iterable[Model], counter: str = "views") -> dict[Model, int]:
    """The sum of each object's rows in HitSlot."""
    return {obj: _sum(HitSlot, obj, counter) for obj in objs}


def daily_sums(objs: Iterable[Model], counter: str = "views") -> dict[Model, int]:
    """The sum of each object's rows in DailyHitSlot."""
    return {obj: _sum(DailyHitSlot, obj, counter) for obj in objs}


def _sum(table, obj: Model, counter: str) -> int:
    """Pass the topmost parent of a child of multi-table inheritance."""
    rows = table.objects.filter(
        content_type=ContentType.objects.get_for_model(obj), object_id=str(obj.pk), counter=counter
    )
    return rows.aggregate(total=Sum("hits"))["total"] or 0


@contextmanager
def another_collation(table: type[Model], column: str) -> Iterator[None]:
    """As on MySQL or MariaDB, if another collation was the default when the table was created."""
    field = table._meta.get_field(column)
    change = f"ALTER TABLE {table._meta.db_table} MODIFY {column} {field.db_type(connection)}"
    with connection.cursor() as cursor:
        cursor.execute(f"{change} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci NOT NULL")
        try:
            yield
        finally:
            cursor.execute(f"{change} NOT NULL")
