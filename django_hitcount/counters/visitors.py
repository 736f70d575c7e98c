"""Numbers of visitors, and sketches: they estimate how many different visitors there were."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple, Self

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey
from django_hitcount.counters.numbers import Number


class Visitors(int):
    """
    How many visitors a counter had in a range of days, as an int with two more attributes.

    With Redis, the number is an estimate by HyperLogLog, with a standard error of 0.81 %.
    Without Redis, the visitors of each day are counted one by one.
    """

    spans: int
    """
    How many spans of days of the range had visitors. A visitor is counted once in each span.

    A span ends when the visitor key rotates, and without Redis each night. Visitors of two spans
    cannot be compared, so one who came in both is counted twice.
    """

    def __new__(cls, count: int, spans: int) -> Self:
        visitors = super().__new__(cls, count)
        visitors.spans = spans
        return visitors

    @property
    def is_distinct(self) -> bool:
        """Whether each visitor is counted once, because all days are in one span."""
        return self.spans <= 1

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]
        return int(self), self.spans

    def __repr__(self) -> str:
        return f"Visitors({int(self)}, spans={self.spans})"

    __str__ = int.__repr__


class Sketch(NamedTuple):
    """Some visitors, as a HyperLogLog of Redis."""

    visitors: int
    """Their number, with a standard error of 0.81 %."""

    data: bytes
    is_new: bool = False
    """Whether it may lack visitors of the table: Redis began it, or started, since a flush."""

    def is_behind(self, known: int) -> bool:
        """Return whether a table with ``known`` visitors may have some that this sketch lacks."""
        return self.is_new or known > self.visitors


class DayInTable(NamedTuple):
    """What the table has of a counter on a day, under one visitor key."""

    visitors: int = 0
    """How many visitors there were."""

    sketch: bytes | None = None
    """Their sketch; None if there is none, or if nobody needs it."""

    others: int = 0
    """How many of them are not in this sketch."""


MergedDays = Mapping[DailyVisitorsKey, bytes | None]
"""Days whose visitors are counted together, with the sketch that the table has of each."""


class VisitorsOfDays:
    """The visitors of counters on some days. A day may be there once for each visitor key."""

    def __init__(
        self,
        in_buffer: Mapping[DailyVisitorsKey, int],
        in_tables: Mapping[DailyVisitorsKey, DayInTable],
    ) -> None:
        self.in_buffer = in_buffer
        self.in_tables = in_tables
        self._days: dict[CounterKey, list[DailyVisitorsKey]] = defaultdict(list)
        for day in {*in_buffer, *in_tables}:
            self._days[day.key].append(day)

    def of(self, number: Number) -> list[DailyVisitorsKey]:
        """Return the days of a number of visitors on which any were counted."""
        return [day for day in self._days[number.key] if number.has(day.day)]

    def on(self, day: DailyVisitorsKey) -> int:
        """Return the visitors of one day."""
        # Redis has all visitors that the table has, and newer ones, unless it lost a sketch.
        return max(self.in_buffer.get(day, 0), self.in_tables.get(day, DayInTable()).visitors)

    def by_day(self, key: CounterKey) -> dict[datetime.date, int]:
        """Return the visitors of a counter on each day on which any were counted."""
        counts: dict[datetime.date, int] = Counter()
        for day in self._days[key]:
            counts[day.day] += self.on(day)
        return counts

    def spans_of(self, number: Number) -> list[MergedDays]:
        """Return the days of a number by visitor key, with the sketches of the table."""
        spans: dict[str, dict[DailyVisitorsKey, bytes | None]] = defaultdict(dict)
        for day in self.of(number):
            spans[day.key_id][day] = self.in_tables.get(day, DayInTable()).sketch
        return [*spans.values()]

    def can_merge(self, span: MergedDays) -> bool:
        """Return whether a span has several days with sketches: not so without Redis."""
        return len(span) > 1 and all(span[day] or day in self.in_buffer for day in span)
