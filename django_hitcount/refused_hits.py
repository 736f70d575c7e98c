"""Read how many hits were refused, and why."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.db.models import Sum

from django_hitcount.counters.days import find_range, last_days
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import RefusedHitSlot
from django_hitcount.twins import async_twin

__all__ = ["RefusedHits", "aget_refused_hits", "get_refused_hits"]


class RefusedHits(NamedTuple):
    """How many hits of one counter were refused on one day for one reason."""

    day: datetime.date
    counter: str
    refusal: str
    hits: int


def get_refused_hits(
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
) -> list[RefusedHits]:
    """
    Return how many hits were refused, and why. Without days, returns those of today.

    The arguments are those of get_hits(). The list is ordered by day and counter, then with the
    most frequent reason first. With Redis, it only includes hits up to the last flush.

    Raises InvalidArgument if the days are invalid. Costs a query.
    """
    ends = find_range(days, first_day, last_day) or last_days(1)
    rows = (
        RefusedHitSlot.objects.using(hits_alias())
        .filter(day__range=ends)
        .values_list(*RefusedHitSlot.KEY)
        .annotate(sum=Sum("hits"))
        .order_by("day", "counter", "-sum", "refusal")
    )
    return [RefusedHits(*row) for row in rows]


aget_refused_hits = async_twin(get_refused_hits)
"""See get_refused_hits()."""
