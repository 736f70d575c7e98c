"""What waits in Redis for a flush, in all partitions and runs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.held_days import read_places
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.counters.batches import Waiting


def read(redis: GuardedRedis) -> Waiting:
    """Read what waits. Costs two round trips. Raises BufferUnavailable."""
    names = [run_keys(*place) for place in read_places(redis)]
    replies = redis.send([ScriptCall("waiting", [own.pending, own.batch]) for own in names])
    return Waiting(
        counters=sum(counters for counters, *_ in replies),
        oldest_at=_first(
            seconds for _, pending, batch, _ in replies for seconds in (pending, batch)
        ),
        claimed_at=_first(claimed for *_, claimed in replies),
    )


def _first(seconds: Iterable[int | None]) -> datetime.datetime | None:
    """Return the earliest moment, of those that are known."""
    known = [moment for moment in seconds if moment is not None]
    return datetime.datetime.fromtimestamp(min(known), tz=datetime.UTC) if known else None
