"""Read the hits of many objects by object and day, as a list of objects shows them."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection

from django.db import models

from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.slots import match_counters
from django_hitcount.db.tables import DailyHitSlot


def read_daily_hits(
    keys: Collection[CounterKey],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    using: str,
) -> dict[CounterKey, dict[datetime.date, int]]:
    """
    Read the hits in the tables of each counter on each day. Leaves out days without rows.

    Costs one query.
    """
    rows = (
        DailyHitSlot.objects.using(using)
        .filter(match_counters(keys), day__range=(first_day, last_day))
        .values_list("content_type_id", "object_id", "counter", "day")
        .annotate(sum=models.Sum("hits"))
    )
    found: dict[CounterKey, dict[datetime.date, int]] = defaultdict(dict)
    for *key, day, hits in rows if keys else ():
        found[CounterKey(*key)][day] = int(hits)
    return found
