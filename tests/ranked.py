"""Rows of hits for tests of rankings, and the ranking that a plain sum gives."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import DailyHitSlot, HitSlot

TODAY = datetime.date(2026, 11, 22)
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)


def day(ago: int) -> datetime.date:
    return TODAY - datetime.timedelta(days=ago)


def add_totals(rows: Mapping[tuple[Any, int], int], counter: str = "views") -> None:
    """Add hits to HitSlot by object and slot."""
    HitSlot.objects.bulk_create(
        HitSlot(**_of(obj, counter), slot=slot, hits=hits) for (obj, slot), hits in rows.items()
    )


def add_daily(rows: Mapping[tuple[Any, int, int], int], counter: str = "views") -> None:
    """Add hits to DailyHitSlot by object, slot and age in days."""
    DailyHitSlot.objects.bulk_create(
        DailyHitSlot(**_of(obj, counter), slot=slot, day=day(ago), hits=hits)
        for (obj, slot, ago), hits in rows.items()
    )


def _of(obj: Any, counter: str) -> dict[str, Any]:
    key = {"content_type_id": content_type_id_of(obj), "object_id": str(obj.pk)}
    return {**key, "counter": counter}


def grouped(
    rows: Mapping[tuple[Any, ...], int],
    objs: Iterable[Any],
    weigh: Callable[[int], int] = lambda ago: 1,
) -> list[tuple[Any, int]]:
    """The objects with hits and their sums, as a GROUP BY would order them."""
    sums: Counter[Any] = Counter()
    for (obj, _, *ago), hits in rows.items():
        sums[obj] += hits * (weigh(*ago) if ago else 1)
    counted = [(obj, sums[obj]) for obj in objs if sums[obj] > 0]
    return sorted(counted, key=lambda row: (-row[1], content_type_id_of(row[0]), str(row[0].pk)))
