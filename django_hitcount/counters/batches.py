"""Batches of hits that are flushed together, and the state of a buffer between flushes."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.sketches import Sketch


class BatchId(NamedTuple):
    """
    The id of a batch for ever: a batch claimed again from an older state of Redis has the same.

    Within a generation the numbers grow, and each batch is claimed once the one before it is in
    the tables.
    """

    partition: int
    generation: str
    number: int

    @property
    def uuid(self) -> uuid.UUID:
        """The primary key in the ledger."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self.partition}:{self.generation}:{self.number}")


class UnsettledHits(NamedTuple):
    """Hits that are in the tables already if the ledger knows their batch."""

    id: BatchId
    run_id: str
    """The run of the server in which they were recorded."""

    is_claimed: bool
    """Whether they are in a batch. If not, they are pending hits of an earlier run."""


class FlushPosition(NamedTuple):
    """A place in the sequence of claims and settles of one partition."""

    partition: int
    run_id: str
    epoch: bytes
    unsettled: Sequence[UnsettledHits] = ()


class RecordResult(NamedTuple):
    """What became of one hit that a buffer was given."""

    total: int | None
    """The exact total of its counter with this hit; None if the buffer does not keep it."""

    refusal: str | None
    """Why the hit does not count; None if it does."""

    position: FlushPosition | None = None
    """Where the partition was when the hit was recorded, if its total must be loaded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferState:
    """What a buffer can say about the totals of some counters without the tables."""

    totals: Mapping[CounterKey, int] = field(default_factory=dict)
    """Exact totals of the counters whose running total the buffer has."""

    positions: Mapping[int, FlushPosition] = field(default_factory=dict)
    """By partition, when the state was read."""

    def batch_ids(self) -> list[BatchId]:
        """The batches to look for in the ledger."""
        return [held.id for at in self.positions.values() for held in at.unsettled]

    def without(self, applied: Collection[BatchId]) -> BufferState:
        """The same without hits of batches that are in the tables."""
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
    """Fields beside the hits that hold no valid hits."""

    is_left_over: bool = False
    """Whether it was set aside earlier or in another run, so that more hits may be pending."""
