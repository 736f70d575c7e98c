"""What a buffer does, and the values that pass between it and the rest."""

from __future__ import annotations

import datetime
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

    from django_hitcount.counters import CounterKey, Hits, Refused, VisitorsKey


class BatchId(NamedTuple):
    """
    Names a batch for ever: what is claimed again from an older state of Redis has the same.

    Batches of one generation have numbers that grow, and each is claimed when the one before
    it is in the tables.
    """

    partition: int
    generation: str
    number: int

    @property
    def uuid(self) -> uuid.UUID:
        """The primary key in the ledger."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self.partition}:{self.generation}:{self.number}")


class SetAside(NamedTuple):
    """Hits that are in the tables already if the ledger knows their batch."""

    id: BatchId
    run_id: str
    """The run of the server that they were recorded under."""

    is_claimed: bool
    """Are they in a batch? If not, they are pending, of a run that is over."""


class FlushPosition(NamedTuple):
    """A place in the sequence of claims and settles of one partition."""

    run_id: str
    epoch: bytes
    set_aside: Sequence[SetAside] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Glimpse:
    """What a buffer knows of the totals of some counters without reading the tables."""

    totals: Mapping[CounterKey, int] = field(default_factory=dict)
    """Exact totals, of the counters whose total the buffer keeps."""

    positions: Mapping[int, FlushPosition] = field(default_factory=dict)
    """By partition, when the glimpse was taken."""

    refused: Sequence[tuple[CounterKey, str]] = ()
    """
    Counters whose hit was refused here, for who made it or since it could not be taken in
    though others could, each with the name of the refusal; a counter as often as it had such
    hits.
    """

    def batch_ids(self) -> list[BatchId]:
        """The batches to look for in the ledger."""
        return [held.id for at in self.positions.values() for held in at.set_aside]


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

    live: Collection[VisitorsKey]
    """Those of the buffer."""

    known: Collection[bytes]
    """Those of the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What one partition held when it was claimed."""

    id: BatchId
    run_id: str
    """The run of the server that its hits were recorded under."""

    totals: Mapping[CounterKey, int]
    daily: Mapping[tuple[CounterKey, datetime.date], int]
    refused: Mapping[Refused, int] = field(default_factory=dict)
    visitors: Mapping[VisitorsKey, Sketch] = field(default_factory=dict)
    malformed: Sequence[bytes] = ()
    """Fields that hold no hits, though they stood among them."""

    is_left_over: bool = False
    """Was it set aside before this claim, or under another run, so that more may wait?"""


class Buffer(ABC):
    """
    Takes hits in and says what it still holds, so that totals stay exact.

    A subclass keeps every promise at every instant and in every process. Bad hits never
    get here: recording has checked them.
    """

    keeps_hits: ClassVar[bool] = True
    """Do hits wait here for a flush? If not, the tables alone hold the totals."""

    @abstractmethod
    def record(self, hits: Sequence[Hits]) -> Glimpse:
        """
        Take hits in, all at once, and glimpse at the totals of their counters.

        Hits that are refused are counted as such; whether a visitor's hit is one is for the
        buffer to say, in the same instant in which it would count it.
        """

    def glimpse(self, keys: Collection[CounterKey]) -> Glimpse:
        """Glimpse at the totals of ``keys``."""
        return Glimpse()

    def complete(
        self,
        sums: Mapping[CounterKey, int],
        applied: Collection[BatchId],
        glimpse: Glimpse,
        *,
        keep: bool,
    ) -> Mapping[CounterKey, int]:
        """
        Turn slot sums, read after ``glimpse``, into exact totals, and ``keep`` them.

        Counters of a partition that was claimed or settled since the glimpse are left
        out: their sum may be older or newer than what the buffer holds now.
        """
        return sums

    def complete_days(
        self,
        key: CounterKey,
        days: Sequence[datetime.date],
        total: int,
        applied: Collection[BatchId],
        glimpse: Glimpse,
    ) -> int | None:
        """As complete() for the hits of one counter on ``days``; None if left out."""
        return total

    def quick_partitions(
        self, objects: Collection[tuple[int, str]], *, counters: int
    ) -> Collection[int] | None:
        """
        The partitions to flush so that all hits of (content type id, object id) pairs are applied.

        None if more than so many counters wait in all of them, or the buffer has to catch up.
        """
        return ()

    def forget(  # noqa: B027 - most buffers keep nothing more
        self, objects: Collection[tuple[int, str]]
    ) -> None:
        """Drop what the buffer keeps of objects whose hits have been deleted from the tables."""

    def visitors(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Mapping[VisitorsKey, int]:
        """How many visitors of counters the buffer knows, by day; estimates."""
        return {}

    def unions(self, unions: Sequence[SketchUnion]) -> Sequence[int]:
        """How many different visitors each has; nothing if nobody can tell now."""
        return ()

    def merge_sketches(self, known: Mapping[VisitorsKey, bytes]) -> Mapping[VisitorsKey, Sketch]:
        """Merge sketches of the table into those of the buffer, and return these."""
        return {}

    def drop_totals(self, keys: Collection[CounterKey]) -> None:
        """Drop the totals that the buffer keeps of ``keys``, so that they are loaded anew."""
        return

    def partitions(self) -> Iterable[int]:
        """The partitions that may hold hits to flush."""
        return ()

    def claim(self, partition: int) -> Batch | None:
        """Set the pending hits of a partition aside, or return what is set aside already."""
        return None

    def settle(self, batch: Batch) -> bool:
        """Drop a batch that the tables hold; False if somebody else has."""
        return False

    def catch_up(self) -> int:
        """Learn what happened while the buffer was away; returns how many notes there were."""
        return 0

    def check(self) -> list[CheckMessage]:
        """System checks of this buffer."""
        return []

    def admit(self, name: str, milliseconds: int) -> bool:
        """Whether nobody else was admitted under ``name`` within the interval; see Throttle."""
        from django_hitcount import admissions
        from django_hitcount.counters import hits_alias

        return admissions.admit(f"throttle:{name}", milliseconds * 1000, using=hits_alias())
