"""Sketches of visitors: they estimate how many different visitors there were."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey


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


class SketchUnion(NamedTuple):
    """Sketches of one counter under one visitor key. A visitor who is in several counts once."""

    key: CounterKey

    live: Collection[DailyVisitorsKey]
    """The sketches in the buffer."""

    known: Collection[bytes]
    """The sketches in the table."""
