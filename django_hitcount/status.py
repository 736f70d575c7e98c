"""What waits in the buffer, and whether flushes come through: for reports and monitoring."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.batches import Waiting
from django_hitcount.counters.days import time_since
from django_hitcount.db import ledger
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.twins import async_twin

__all__ = ["STUCK_AFTER", "FlushStatus", "aget_flush_status", "get_flush_status"]

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
    Return what waits in the buffer.

    Costs a query, and with Redis two round trips. Raises the database's error, but not that of
    Redis: see FlushStatus.is_answering.
    """
    using = hits_alias()
    with savepoint(using):
        last_flush_at = ledger.read_last_flush(using=using)
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
