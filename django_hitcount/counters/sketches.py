"""Sketches of visitors."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey


class Sketch(NamedTuple):
    """Redis's HyperLogLog of some visitors."""

    visitors: int
    """Their number, with a standard error of 0.81 %."""

    data: bytes
    is_new: bool = False
    """Whether it was begun since the last flush."""

    def is_behind(self, known: int) -> bool:
        """Whether a table that has ``known`` visitors may have some that are not in this sketch."""
        return self.is_new or known > self.visitors


class SketchUnion(NamedTuple):
    """Sketches of one counter under one visitor key, to count each visitor in them once."""

    key: CounterKey

    live: Collection[DailyVisitorsKey]
    """The sketches in the buffer."""

    known: Collection[bytes]
    """The sketches in the table."""
