"""What Redis missed while it was away: kept in the database until Redis has been told."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import FlushedBatch, MissedRecord
from django_hitcount.outages.command_ids import CommandId
from django_hitcount.outages.deadlines import pause_deadline

NOTES_AT_A_TIME = 500

CLOCK_SKEW = datetime.timedelta(seconds=2)
"""By how much the clocks of two processes may differ."""


class Sent(NamedTuple):
    """A command that was sent, or was to be."""

    numbered: CommandId
    run_id: str
    """The run of Redis that it was for."""

    at: datetime.datetime
    """When, or a bit before."""


class Note(NamedTuple):
    """A MissedRecord as read back."""

    id: int
    hits: list[NewHits]
    numbered: CommandId | None
    """Under what number to send the hits again; None if they are in the slots."""

    run_id: str
    """The run of Redis that they were sent to."""

    missed_at: datetime.datetime


def notes(
    sent: Sent, in_slots: Sequence[NewHits], in_doubt: Sequence[NewHits]
) -> Iterator[MissedRecord]:
    """
    Notes on hits that Redis missed.

    Those ``in_slots`` are in the tables, though the running totals do not know it; of those
    ``in_doubt``, Redis may or may not have run the command.
    """
    counted = [hit for hit in in_slots if not hit.refusal]
    if counted:
        yield MissedRecord(hits=_as_json(counted))
    if in_doubt:
        yield MissedRecord(
            hits=_as_json(in_doubt),
            recorder=sent.numbered.recorder,
            sequence=sent.numbered.sequence,
            run_id=sent.run_id,
            missed_at=sent.at,
        )


@pause_deadline()
def oldest_notes() -> list[Note]:
    """The oldest notes. Costs one query."""
    records = MissedRecord.objects.using(hits_alias()).order_by("pk")[:NOTES_AT_A_TIME]
    return [
        Note(
            record.pk,
            _from_json(record.hits),
            _numbered(record),
            record.run_id,
            record.missed_at,
        )
        for record in records
    ]


@pause_deadline()
def was_flushed_since(note: Note, partition: int) -> bool:
    """Whether hits of the same run and partition were flushed since the command was sent."""
    return (
        FlushedBatch.objects.using(hits_alias())
        .filter(partition=partition, generation__startswith=f"{note.run_id}:")
        .filter(flushed_at__gte=note.missed_at - CLOCK_SKEW)
        .exists()
    )


@pause_deadline()
def drop(notes: Iterable[Note]) -> None:
    """Forget notes that Redis has been told of. Costs one query."""
    records = MissedRecord.objects.using(hits_alias())
    records.filter(pk__in=[note.id for note in notes]).delete()


def _numbered(record: MissedRecord) -> CommandId | None:
    if record.recorder is None or record.sequence is None:
        return None
    return CommandId(record.recorder, record.sequence)


def _from_json(hits: list[list[Any]]) -> list[NewHits]:
    return [
        NewHits(
            CounterKey(content_type_id, object_id, counter),
            datetime.date.fromisoformat(day),
            amount,
            *refusal,
        )
        for content_type_id, object_id, counter, day, amount, *refusal in hits
    ]


def _as_json(hits: Sequence[NewHits]) -> list[list[str | int]]:
    """Hits without who made them: nothing of a visitor is kept."""
    return [
        [*hit.key, hit.day.isoformat(), hit.amount, *([hit.refusal] if hit.refusal else [])]
        for hit in hits
    ]
