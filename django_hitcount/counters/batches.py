"""Batches of hits that are flushed together, and what a buffer knows and says of its hits."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.numbers import Number
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


class Position(NamedTuple):
    """
    Where a partition is.

    Each claim, settle and discard ends an epoch. If it is the same before and after the tables
    are read, the buffer may keep what was read.
    """

    partition: int
    run_id: str
    epoch: bytes
    next_id: BatchId | None = None
    """The id of the batch that the pending hits become, if it was asked for."""


Held = Mapping[BatchId, Mapping[tuple[Any, datetime.date], int]]
"""
Hits in the buffer, by the id that their batch has, or gets; then by counter and day, or by the name
of a counter and the day. They are already in the tables if the ledger has the id.
"""


@dataclass(kw_only=True, slots=True)
class Known:
    """What a buffer knows of the numbers that were wanted, without the tables."""

    values: dict[Number, Any] = field(default_factory=dict)
    """Those that it keeps. They are exact."""

    held: dict[BatchId, dict[tuple[CounterKey, datetime.date], int]] = field(default_factory=dict)
    """The hits that it holds of the others, see Held."""

    visitors: dict[DailyVisitorsKey, int] = field(default_factory=dict)
    """The visitors that it has of the others, by day. Estimates."""

    keepable: dict[Number, Position] = field(default_factory=dict)
    """Those of the others that it can keep, with the position of their partition when they were
    read."""

    def add(self, later: Known) -> None:
        """Add what was read later. Of the same hits, this counts."""
        self.values |= later.values
        self.visitors |= later.visitors
        self.keepable |= later.keepable
        for batch_id, hits in later.held.items():
            self.held.setdefault(batch_id, {}).update(hits)


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

    claim_number: int = 0
    """
    The number of the claim that set it aside, chosen at random. It differs if the same hits were
    claimed again, after Redis went back to a state from before the claim.
    """

    is_left_over: bool = False
    """Whether an earlier flush or run left it. If so, more hits may be pending: claim again."""
