"""The interface of buffers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from django.core.checks import CheckMessage

from django_hitcount.counters.batches import Batch, Held, Known, RecordResult, Waiting
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import MergedDays, Sketch, Visitors, VisitorsOfDays
from django_hitcount.db import admissions, seen_visitors
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.sums import DayRange
from django_hitcount.db.tables import hits_alias
from django_hitcount.outages.page_writes import write_on_page


class Buffer(ABC):
    """
    Takes hits in, and knows which of them are not in the tables yet, so that totals stay exact.

    A subclass must keep what these methods promise at any time and with any number of processes.
    It never gets invalid hits: recording checks them first.

    A buffer may consist of partitions. A flush moves the hits of a partition into the tables in
    three steps: it claims them as a batch, applies the batch to the tables, and settles it. Hits
    that were not claimed yet are pending.
    """

    keeps_hits: ClassVar[bool] = True
    """Whether hits wait here for a flush. If not, the sums in the tables are the totals."""

    @abstractmethod
    def record(
        self, hits: Sequence[NewHits], wanted: tuple[Number, ...] = ()
    ) -> tuple[list[RecordResult], Known]:
        """
        Take hits in, and return a result for each, in order.

        Counts a hit that has a refusal as refused. Decides whether the hit of a visitor is a
        repeat, in the same step in which it counts the hit.

        Also returns what read() would return now of the numbers that are ``wanted``, and of the
        totals that no result has, as far as that costs nothing more.
        """

    def read(self, numbers: Collection[Number], *, may_be_kept: bool = True) -> Known:
        """
        Return what the buffer knows of numbers.

        The tables are read after that. Whatever is flushed in between, the ledger then has the id
        of those held hits that are in the tables. If visitors may not be kept, counts each day.
        """
        return Known()

    def read_days_of_model(
        self, content_type_id: int | None, days: DayRange, *, counter: str
    ) -> Held:
        """Return the hits on all objects of a model (None: of all) that the buffer holds."""
        return {}

    def keep_totals(self, totals: Mapping[Number, int], known: Known) -> None:
        """
        Keep exact totals, so that read() has them next time.

        They are the sums of the tables, which were read after ``known``, and the held hits that
        were not in the tables, without the pending ones. Keeps none of a partition whose epoch has
        changed since: after a claim or a settle, it has other hits than these.
        """
        return

    def keep_visitors(
        self, numbers: Iterable[Number], days: VisitorsOfDays, known: Known
    ) -> Mapping[Number, Visitors]:
        """
        Keep numbers of visitors, so that read() has them next time, and count them.

        ``days`` has what the tables have, which were read after ``known``. Leaves out numbers that
        cannot be kept, and those of a partition in which something has happened since: the table or
        the sketches may have changed.
        """
        return {}

    def discard_objects(
        self, objects: Collection[ObjectKey], *, only_flushed: bool = False
    ) -> None:
        """
        Drop what the buffer keeps of objects whose counts have been deleted from the tables.

        ``only_flushed`` leaves the visitors of days on which some wait for a flush.
        """
        return

    def pause_totals(self, keys: Iterable[CounterKey]) -> None:
        """
        Keep no totals of ``keys`` until the COMMIT, or for PAUSE_SECONDS if the process dies.

        For a transaction that has changed the sums in the tables, just before its COMMIT: until
        then they are the old ones, and then the new ones, so readers must ask the tables. What this
        writes in the transaction lets the next flush drop the totals if that fails after the
        COMMIT. Does not raise if the buffer is away: what it keeps is then wrong from the COMMIT
        until that flush.
        """
        return

    def discard_totals(self, keys: Collection[CounterKey]) -> None:
        """Drop the totals of ``keys`` that the buffer keeps, so that they are read again."""
        return

    def discard_all_totals(self, partitions: Collection[int] | None = None) -> None:
        """
        As discard_totals(), for all counters, or for those of some partitions.

        Raises BufferUnavailable.
        """
        return

    def count_merged(self, merges: Sequence[MergedDays]) -> Sequence[int | None]:
        """Return how many different visitors days had together; None where it cannot say that."""
        return [None] * len(merges)

    def merge_sketches(
        self, known: Mapping[DailyVisitorsKey, bytes]
    ) -> Mapping[DailyVisitorsKey, Sketch]:
        """Merge sketches of the table into those of the buffer, and return the results."""
        return {}

    def read_waiting(self) -> Waiting:
        """Return what waits for a flush. Raises BufferUnavailable."""
        return Waiting()

    def partitions(self) -> Iterable[int]:
        """Return the partitions that may hold hits to flush."""
        return ()

    def claim(self, partition: int) -> Batch | None:
        """
        Set the pending hits of a partition aside as a batch, and return it.

        Returns None if there are none. If an older batch was not settled yet, returns that one.
        """
        return None

    def settle(self, batch: Batch) -> bool:
        """Drop a batch that is in the tables. Return False if another flusher has dropped it."""
        return False

    def admit(self, name: str, *, milliseconds: int) -> bool:
        """
        Return whether the caller is admitted under ``name``, see Throttle. An interval begins then.

        By default, the database keeps the intervals. An error leaves the transaction of the page.
        """
        with savepoint(hits_alias()):
            return admissions.admit(f"throttle:{name}", milliseconds * 1000)

    def count_by_name(self, name: str, amount: int, *, milliseconds: int) -> int:
        """
        Add to the sum that all processes have under ``name``, and return it.

        The name begins with a date, after which nobody needs the sum. It must not be needed after
        ``milliseconds``, either. By default, the database keeps the sums. A lost answer may make
        one too high.
        """
        add = partial(seen_visitors.count_by_name, name, amount)
        return write_on_page(add, using=hits_alias())

    def catch_up(self) -> int:
        """Take in what the buffer missed while it was away. Return how many records that were."""
        return 0

    def check(self, *, with_server: bool = False) -> list[CheckMessage]:
        """Return what is wrong with the settings of this buffer, or else with its server."""
        return []
