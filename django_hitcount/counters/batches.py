"""Batches of hits that are flushed together, and what became of hits that were recorded."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.visitors import Sketch


class BatchId(NamedTuple):
    """
    The permanent id of a batch. It lies in Redis beside the hits, from the first of them on. If
    Redis goes back, and the same hits are claimed again, their batch has the same id.

    A generation is a series of batches, named after the first hit in it. Within a generation the
    numbers grow. A batch is claimed only when the one before it is in the tables.
    """

    partition: int
    generation: str
    number: int


CounterDay = tuple[str, datetime.date]
"""The name of a counter, and a day."""


class Waiting(NamedTuple):
    """What waits in a buffer for a flush, or for the end of one."""

    counters: int = 0
    """Pending counters, and those of batches that were not settled yet."""

    oldest_at: datetime.datetime | None = None
    """When the oldest of their hits was recorded."""

    claimed_at: datetime.datetime | None = None
    """When the oldest batch was claimed that was not settled yet."""


class RecordResult(NamedTuple):
    """What a buffer did with one hit."""

    total: int | None
    """The exact total of its counter with this hit; None if the buffer does not keep it."""

    refusal: str | None
    """Why the hit does not count; None if it does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The hits of one partition when it was claimed."""

    id: BatchId
    run_id: str
    """The run of the server in which its hits were recorded."""

    totals: Mapping[CounterKey, int]
    daily: Mapping[tuple[CounterKey, datetime.date], int]
    refused: Mapping[RefusedKey, int] = field(default_factory=dict)
    visitors: Mapping[DailyVisitorsKey, Sketch] = field(default_factory=dict)
    malformed: Sequence[bytes] = ()
    """Other fields of the batch, which do not hold valid hits."""

    claim: int = 0
    """
    The number of the claim, chosen at random. It differs if the same hits were claimed again, after
    Redis went back to a state from before the claim.
    """

    is_left_over: bool = False
    """Whether an earlier flush or run left it. If so, more hits may be pending: claim again."""
