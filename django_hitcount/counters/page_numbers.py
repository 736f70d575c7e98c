"""The numbers that a page shows: totals, and the visitors of the last days."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django_hitcount.counters.batches import BufferState, FlushPosition
from django_hitcount.counters.keys import CounterKey, CounterRange, DailyVisitorsKey
from django_hitcount.counters.visitors import Visitors


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The numbers to read. Equal to nothing but itself, so that what it needs can be cached."""

    totals: Collection[CounterKey] = ()
    visitors: Collection[CounterRange] = ()
    """Ranges that end today."""


class UnkeptRange(NamedTuple):
    """What a buffer knows of a range of days that it does not keep, but can."""

    position: FlushPosition
    """Where its partition was."""

    days: Mapping[DailyVisitorsKey, int]
    """The numbers of visitors that the buffer has of each day."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferNumbers:
    """What a buffer knows of the numbers that were wanted, without the tables."""

    state: BufferState = field(default_factory=BufferState)
    visitors: Mapping[CounterRange, Visitors] = field(default_factory=dict)
    unkept: Mapping[CounterRange, UnkeptRange] = field(default_factory=dict)
    """What keep_visitors() needs to keep the other ranges."""


NO_NUMBERS = BufferNumbers()
"""What a buffer knows that nobody has asked."""
