"""Sketches of visitors."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey


class Sketch(NamedTuple):
    """Redis's HyperLogLog of some visitors."""

    visitors: int
    """How many there are, give or take 0.81 % (the standard error)."""

    data: bytes
    is_new: bool = False
    """Was it begun since the last flush?"""

    def is_behind(self, known: int) -> bool:
        """Whether a table that knows so many visitors may know some that are not in here."""
        return self.is_new or known > self.visitors


class SketchUnion(NamedTuple):
    """Sketches of one counter under one visitor key, whose visitors are to be counted once."""

    key: CounterKey

    live: Collection[DailyVisitorsKey]
    """Those of the buffer."""

    known: Collection[bytes]
    """Those of the table."""
