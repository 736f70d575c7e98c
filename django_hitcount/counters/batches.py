"""Batches of hits that are flushed together, and the state of a buffer between flushes."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.sketches import Sketch


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


class UnsettledHits(NamedTuple):
    """Hits in the buffer that are already in the tables if the ledger has the id of their batch."""

    id: BatchId
    run_id: str
    """The run in which they were recorded: the time of a Redis server between two starts."""

    is_claimed: bool
    """
    True if they were claimed as a batch.

    False if they are still pending, in an earlier run. ``id`` is then the id that their batch gets.
    """


CounterDay = tuple[str, datetime.date]
"""The name of a counter, and a day."""


class HeldDays(NamedTuple):
    """Hits in the buffer. They are already in the tables if the ledger has ``id``."""

    id: BatchId
    """The id of their batch, or the one that it gets."""

    hits: Mapping[CounterDay, int]


class Waiting(NamedTuple):
    """What waits in a buffer for a flush, or for the end of one."""

    counters: int = 0
    """Pending counters, and those of batches that were not settled yet."""

    oldest_at: datetime.datetime | None = None
    """When the oldest of their hits was recorded."""

    claimed_at: datetime.datetime | None = None
    """When the oldest batch was claimed that was not settled yet."""


class FlushPosition(NamedTuple):
    """
    Where a partition is in its sequence of claims and settles.

    Each claim and each settle raises ``epoch``. If it is the same before and after the tables are
    read, the buffer and the tables can be added up.
    """

    partition: int
    run_id: str
    epoch: bytes
    unsettled: Sequence[UnsettledHits] = ()


class RecordResult(NamedTuple):
    """What a buffer did with one hit."""

    total: int | None
    """The exact total of its counter with this hit; None if the buffer does not keep it."""

    refusal: str | None
    """Why the hit does not count; None if it does."""

    position: FlushPosition | None = None
    """Where the partition was when the hit was recorded; None if the total is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferState:
    """What a buffer knows about the totals of some counters, without the tables."""

    totals: Mapping[CounterKey, int] = field(default_factory=dict)
    """The exact totals of those counters whose running total the buffer has."""

    positions: Mapping[int, FlushPosition] = field(default_factory=dict)
    """The positions of the other counters' partitions, at the time when the state was read."""

    def batch_ids(self) -> list[BatchId]:
        """Return the batches to look for in the ledger."""
        return [held.id for at in self.positions.values() for held in at.unsettled]

    def without(self, applied: Collection[BatchId]) -> BufferState:
        """Return this state without the unsettled hits of the batches ``applied``."""
        positions = {
            partition: at._replace(unsettled=[h for h in at.unsettled if h.id not in applied])
            for partition, at in self.positions.items()
        }
        return replace(self, positions=positions)


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
