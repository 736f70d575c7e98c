"""
For reports and monitoring: what waits in the buffer, whether flushes come through, and what was
refused.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Sum

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.batches import Waiting
from django_hitcount.counters.days import find_range, last_days, time_since
from django_hitcount.db import ledger
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import RefusedHitSlot, hits_alias
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.twins import async_twin

__all__ = ["aget_flush_status", "aget_refused_hits", "get_flush_status", "get_refused_hits"]

STUCK_AFTER = datetime.timedelta(minutes=5)
"""How long a batch may wait after its claim. A flush takes some seconds for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlushStatus:
    """What the buffer holds. Without Redis, hits do not wait, so all of it is 0 or None."""

    pending_counters: int
    """How many counters have hits that are not in the tables yet."""

    oldest_pending_at: datetime.datetime | None
    """When the oldest of these hits was recorded, by the clock of Redis; None if none waits."""

    last_flush_at: datetime.datetime | None
    """When a flush last wrote hits into the tables; None if none ever did."""

    stuck_batch_since: datetime.datetime | None
    """
    When a flush claimed a batch that is not settled five minutes later; None without one.

    The flush died, or the database rejects the batch. The next flush tries again.
    """

    is_answering: bool = True
    """False if Redis does not answer now. What waits there is then not known, and left out."""


def get_flush_status() -> FlushStatus:
    """
    Return what waits in Redis for a flush, and when hits were last flushed.

    It has ``pending_counters``, ``oldest_pending_at``, ``last_flush_at``, ``stuck_batch_since`` and
    ``is_answering``.

    Costs a query, and with Redis two round trips. Raises the database's error, but not that of
    Redis: see FlushStatus.is_answering.
    """
    with savepoint(hits_alias()):
        last_flush_at = ledger.read_last_flush()
    waiting, is_answering = Waiting(), True
    try:
        waiting = get_buffer().read_waiting()
    except BufferUnavailable:
        is_answering = False
    claimed_at = waiting.claimed_at
    is_stuck = claimed_at is not None and time_since(claimed_at) > STUCK_AFTER
    return FlushStatus(
        pending_counters=waiting.counters,
        oldest_pending_at=waiting.oldest_at,
        last_flush_at=last_flush_at,
        stuck_batch_since=claimed_at if is_stuck else None,
        is_answering=is_answering,
    )


aget_flush_status = async_twin(get_flush_status)
"""See get_flush_status()."""


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

    Each item has a ``day``, a ``counter``, the name of a ``refusal``, and how many ``hits`` it
    refused. The arguments are those of get_hits(). The list is ordered by day and counter, then
    with the most frequent reason first. With Redis, it only includes hits up to the last flush.

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
