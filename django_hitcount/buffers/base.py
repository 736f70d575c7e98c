"""What a buffer does."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from django.core.checks import CheckMessage

from django_hitcount.counters.batches import Batch, BufferState, RecordResult
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.sketches import Sketch, SketchUnion


class Buffer(ABC):
    """
    Takes hits in and reports what it still holds, so that totals stay exact.

    A subclass keeps every promise at every instant and in every process. It never gets invalid
    hits: recording checks them first.
    """

    keeps_hits: ClassVar[bool] = True
    """Do hits wait here for a flush? If not, the tables alone hold the totals."""

    merges_sketches: ClassVar[bool] = False
    """Can count_unions() count the visitors of several days together?"""

    @abstractmethod
    def record(self, hits: Sequence[NewHits]) -> list[RecordResult]:
        """
        Take hits in, all at once; returns what became of each, in order.

        Hits that are refused already are counted as refused. The buffer refuses a visitor's
        hit itself, in the same instant in which it would count it.
        """

    def read_state(self, keys: Collection[CounterKey]) -> BufferState:
        """What the buffer knows of the totals of ``keys``."""
        return BufferState()

    def complete_totals(
        self, sums: Mapping[CounterKey, int], *, state: BufferState, keep: bool
    ) -> Mapping[CounterKey, int]:
        """
        Turn slot sums, read after ``state``, into exact totals, and ``keep`` them.

        Leaves out counters of a partition that was claimed or settled since: their sum may be
        older or newer than what the buffer holds now.
        """
        return sums

    def complete_daily_total(
        self, key: CounterKey, *, days: Sequence[datetime.date], total: int, state: BufferState
    ) -> int | None:
        """As complete_totals() for the hits of one counter on ``days``; None if left out."""
        return total

    def quick_partitions(
        self, objects: Collection[ObjectKey], *, counters: int
    ) -> Collection[int] | None:
        """
        The partitions to flush so that all hits of (content type id, object id) pairs are applied.

        None if more than ``counters`` wait in all of them, or the buffer has to catch up.
        """
        return ()

    def discard_objects(self, objects: Collection[ObjectKey]) -> None:
        """Drop what the buffer keeps of objects whose hits have been deleted from the tables."""
        return

    def discard_totals(self, keys: Collection[CounterKey]) -> None:
        """Drop the totals that the buffer keeps of ``keys``, so that they are loaded anew."""
        return

    def count_visitors(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Mapping[DailyVisitorsKey, int]:
        """How many visitors of counters the buffer knows, by day; estimates."""
        return {}

    def count_unions(self, unions: Sequence[SketchUnion]) -> Sequence[int] | None:
        """How many different visitors each has; None if that cannot be counted now."""
        return None

    def merge_sketches(
        self, known: Mapping[DailyVisitorsKey, bytes]
    ) -> Mapping[DailyVisitorsKey, Sketch]:
        """Merge sketches of the table into those of the buffer, and return these."""
        return {}

    def partitions(self) -> Iterable[int]:
        """The partitions that may hold hits to flush."""
        return ()

    def claim(self, partition: int) -> Batch | None:
        """Set the pending hits of a partition aside; returns an older batch if one is set aside."""
        return None

    def settle(self, batch: Batch) -> bool:
        """Drop a batch that the tables hold; False if another flusher has dropped it."""
        return False

    def catch_up(self) -> int:
        """Take in what the buffer missed while it was away; returns how much there was."""
        return 0

    def check(self) -> list[CheckMessage]:
        """System checks of this buffer."""
        return []
