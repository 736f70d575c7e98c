"""The buffer that is none: hits go straight into the slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from django_hitcount import seen, slots
from django_hitcount.breaker import Breaker
from django_hitcount.buffers.base import Buffer, Glimpse
from django_hitcount.counters import AddressMark, CounterKey, Hits, hits_alias
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
        return Glimpse(refused=self.write(hits))

    def write(
        self, hits: Sequence[Hits], doubtful: Sequence[Hits] = (), notes: Notes | None = None
    ) -> Sequence[tuple[CounterKey, str]]:
        """
        Judge hits, write those that are not ``doubtful``, and notes on all, or nothing at all.

        Returns the counters whose hit turned out to be refused, each with the refusal.
        """
        using = hits_alias()
        beyond: set[AddressMark] = set()

        def write() -> Sequence[tuple[CounterKey, str]]:
            judged = seen.judged([*hits, *doubtful], beyond, using=using)
            sure, unsure = judged[: len(hits)], judged[len(hits) :]
            slots.add_hits(sure, slot=slots.random_slot(), using=using)
            for note in notes(sure, unsure) if notes else ():
                note.save(using=using, force_insert=True)
            return _refused([*hits, *doubtful], judged)

        run = partial(
            in_transaction, write, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False
        )
        with self._breaker.guard():
            while True:
                try:
                    return run()
                except seen.LimitReached as exc:
                    beyond.add(exc.address)


def _refused(hits: Sequence[Hits], judged: Sequence[Hits]) -> list[tuple[CounterKey, str]]:
    return [
        (after.key, after.refusal)
        for before, after in zip(hits, judged, strict=True)
        if after.refusal and not before.refusal
    ]
