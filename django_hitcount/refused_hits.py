"""Read how many hits were refused, and why."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.db.models import Sum

from django_hitcount.counters.days import list_days
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import RefusedHitSlot

__all__ = ["RefusedHits", "refused_between"]


class RefusedHits(NamedTuple):
    """How many hits of one counter were refused on one day for one reason."""

    day: datetime.date
    counter: str
    refusal: str
    hits: int


def refused_between(first_day: datetime.date, last_day: datetime.date) -> list[RefusedHits]:
    """
    Read how many hits were refused from one calendar day to another, both included, and why.

    Both days are dates in TIME_ZONE, and the range has at most 3,660 days. The list is ordered by
    day and counter, then with the most frequent reason first. With Redis, it only includes hits up
    to the last flush.

    Raises InvalidDay if the days are invalid. Costs a query.
    """
    list_days(first_day, last_day)
    rows = (
        RefusedHitSlot.objects.using(hits_alias())
        .filter(day__range=(first_day, last_day))
        .values_list(*RefusedHitSlot.KEY)
        .annotate(sum=Sum("hits"))
        .order_by("day", "counter", "-sum", "refusal")
    )
    return [RefusedHits(*row) for row in rows]
