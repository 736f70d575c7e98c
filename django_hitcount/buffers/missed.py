"""What Redis missed while it was away: kept in the database until Redis has been told."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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


def oldest_notes() -> list[Note]:
    """The oldest notes. Costs one query."""
    records = MissedRecord.objects.using(hits_alias()).order_by("pk")[:NOTES_AT_A_TIME]
    return [Note(record.pk, _from_json(record.hits), _numbered(record)) for record in records]


def drop(notes: Iterable[Note]) -> None:
    """Forget notes that Redis has been told of. Costs one query."""
    records = MissedRecord.objects.using(hits_alias())
    records.filter(pk__in=[note.id for note in notes]).delete()


def _numbered(record: MissedRecord) -> Numbered | None:
    if record.recorder is None or record.sequence is None:
        return None
    return Numbered(record.recorder, record.sequence)


def _from_json(hits: list[list[Any]]) -> list[Hits]:
    return [
        Hits(CounterKey(*key), datetime.date.fromisoformat(day), amount)
        for *key, day, amount in hits
    ]


def _as_json(hits: Sequence[Hits]) -> list[list[str | int]]:
    return [[*hit.key, hit.day.isoformat(), hit.amount] for hit in hits]
