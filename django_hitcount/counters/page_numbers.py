"""The numbers that a page shows: totals, and the visitors of the last days."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django_hitcount.counters.batches import BufferState, FlushPosition
from django_hitcount.counters.keys import CounterKey


class LastDays(NamedTuple):
    """A counter, and a range of days whose last one is today: the visitors to count."""

    key: CounterKey
    first_day: datetime.date
    today: datetime.date


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The numbers to read. Equal to nothing but itself, so that what it needs can be cached."""

    totals: Collection[CounterKey] = ()
    visitors: Collection[LastDays] = ()


class SpanCount(NamedTuple):
    """How many visitors there were, and how many spans of days were counted separately."""

    visitors: int
    spans: int


class DayInTable(NamedTuple):
    """What the table has of a counter on a day: the number of visitors, and their sketch."""

    visitors: int
    sketch: bytes | None
    """None if it has none, or if nobody needs it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferNumbers:
    """What a buffer knows of the numbers that were wanted, without the tables."""

    state: BufferState = field(default_factory=BufferState)
    visitors: Mapping[LastDays, SpanCount] = field(default_factory=dict)
    unkept: Mapping[LastDays, FlushPosition] = field(default_factory=dict)
    """Ranges that keep_visitors() must complete, with the position of their partition."""


NO_NUMBERS = BufferNumbers()
"""What a buffer knows that nobody has asked."""
