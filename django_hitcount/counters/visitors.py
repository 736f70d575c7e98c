"""Numbers of visitors, and sketches: they estimate how many different visitors there were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from django_hitcount.counters.keys import DailyVisitorsKey


class Visitors(int):
    """
    How many visitors a counter had in a range of days, as an int with two more attributes.

    With Redis, the number is an estimate by HyperLogLog, with a standard error of 0.81 %.
    Without Redis, the visitors of each day are counted one by one.
    """

    spans: int
    """
    How many spans of days the range has. A visitor is counted once in each span.

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
