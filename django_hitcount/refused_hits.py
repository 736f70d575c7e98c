"""Read how many hits were refused, and why."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.db.models import Sum

from django_hitcount.counters.days import list_days
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import RefusedHitSlot


class RefusedHits(NamedTuple):
    """The hits of one counter that were refused on one day for one reason."""

    day: datetime.date
    counter: str
    refusal: str
    hits: int


def refused_between(first_day: datetime.date, last_day: datetime.date) -> list[RefusedHits]:
    """
    Refused hits from one calendar day to another, both included, in TIME_ZONE.

    By day, then counter, the most frequent reason first. With Redis, those up to the last
    flush. Costs a query. Raises InvalidDay as hits_between() does.
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
