"""Sums of the tables, read without the package."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.contenttypes.models import ContentType
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
