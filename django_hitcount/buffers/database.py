"""The buffer that is none: hits go straight into the slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django_hitcount import seen, slots
from django_hitcount.breaker import Breaker
from django_hitcount.buffers.base import Buffer, Glimpse
from django_hitcount.counters import CounterKey, Hits, hits_alias
from django_hitcount.refusals import REPEAT
from django_hitcount.tables import MissedRecord
from django_hitcount.transactions import in_transaction

PATIENCE_SECONDS = 0.5
"""How long a hit is tried again for: it is worth less than the page that waits for it."""

Notes = Callable[[Sequence[Hits], Sequence[Hits]], Iterable[MissedRecord]]
"""Makes notes on hits that are written, and on those that are left in doubt."""


class DatabaseBuffer(Buffer):
    """
    Writes hits at once into a random slot of both tables.

    Costs a transaction of two statements, and some more where visitors are told apart: see
    seen.judged(). No task or command needs to run but compact_hits, which keeps the number of rows
    down.
    """

    keeps_hits = False

    def __init__(self) -> None:
        self._breaker = Breaker("The database of django_hitcount")

    def record(self, hits: Sequence[Hits]) -> Glimpse:
        return Glimpse(repeats=self.write(hits))

    def write(
        self, hits: Sequence[Hits], doubtful: Sequence[Hits] = (), notes: Notes | None = None
    ) -> Sequence[CounterKey]:
        """
        Judge hits, write those that are not ``doubtful``, and notes on all, or nothing at all.

        Returns the counters whose hit is a repeat.
        """
        using = hits_alias()

        def write() -> Sequence[CounterKey]:
            judged = seen.judged([*hits, *doubtful], using=using)
            sure, unsure = judged[: len(hits)], judged[len(hits) :]
            slots.add_hits(sure, slot=slots.random_slot(), using=using)
            for note in notes(sure, unsure) if notes else ():
                note.save(using=using, force_insert=True)
            return [hit.key for hit in (*sure, *unsure) if hit.refusal == REPEAT]

        with self._breaker.guard():
            return in_transaction(
                write, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False
            )
