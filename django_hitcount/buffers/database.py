"""The buffer that is none: hits go straight into the slots."""

from __future__ import annotations

from collections.abc import Sequence

from django_hitcount import slots
from django_hitcount.breaker import Breaker
from django_hitcount.buffers.base import Buffer, Glimpse
from django_hitcount.counters import Hits, hits_alias
from django_hitcount.tables import MissedRecord
from django_hitcount.transactions import in_transaction

PATIENCE_SECONDS = 0.5
"""How long a hit is tried again for: it is worth less than the page that waits for it."""


class DatabaseBuffer(Buffer):
    """
    Writes hits at once into a random slot of both tables.

    Costs a transaction of two statements. No task or command needs to run but
    compact_hits, which keeps the number of rows down.
    """

    keeps_hits = False

    def __init__(self) -> None:
        self._breaker = Breaker("The database of django_hitcount")

    def record(self, hits: Sequence[Hits]) -> Glimpse:
        self.write(hits)
        return Glimpse()

    def write(self, hits: Sequence[Hits], notes: Sequence[MissedRecord] = ()) -> None:
        """Write hits, and notes on them, or neither."""
        using = hits_alias()

        def write() -> None:
            slots.add_hits(hits, slot=slots.random_slot(), using=using)
            for note in notes:
                note.save(using=using, force_insert=True)

        with self._breaker.guard():
            in_transaction(write, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False)
