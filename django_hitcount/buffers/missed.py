"""What Redis missed while it was away: kept in the database until Redis has been told."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django_hitcount.buffers.recorders import Numbered
from django_hitcount.counters import CounterKey, Hits, hits_alias
from django_hitcount.tables import MissedRecord

NOTES_AT_A_TIME = 500


class Note(NamedTuple):
    """A MissedRecord as read back."""

    id: int
    hits: list[Hits]
    numbered: Numbered | None
    """Under what number to send the hits again; None if they are in the slots."""


def in_slots(hits: Sequence[Hits]) -> MissedRecord:
    """A note that ``hits`` are in the slots, though the running totals do not know it."""
    return MissedRecord(hits=_as_json(hits))


def in_doubt(hits: Sequence[Hits], numbered: Numbered) -> MissedRecord:
    """A note that Redis may or may not have run a command."""
    return MissedRecord(hits=_as_json(hits), recorder=numbered.recorder, sequence=numbered.sequence)


def notes() -> Iterator[Note]:
    """All notes, oldest first. Costs one query if there are none."""
    records = MissedRecord.objects.using(hits_alias()).order_by("pk")
    for record in records.iterator(chunk_size=NOTES_AT_A_TIME):
        hits = [
            Hits(CounterKey(*key), datetime.date.fromisoformat(day), amount)
            for *key, day, amount in record.hits
        ]
        numbered = Numbered(record.recorder, record.sequence or 0) if record.recorder else None
        yield Note(record.pk, hits, numbered)


def drop(note: Note) -> None:
    """Forget a note that Redis has been told of."""
    MissedRecord.objects.using(hits_alias()).filter(pk=note.id).delete()


def _as_json(hits: Sequence[Hits]) -> list[list[str | int]]:
    return [[*hit.key, hit.day.isoformat(), hit.amount] for hit in hits]
