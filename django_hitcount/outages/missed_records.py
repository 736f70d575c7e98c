"""
Missed records: the hits that Redis missed while it was away. The database keeps them until they are
delivered to Redis.

A run is the time of a Redis server from one start to the next. After a restart, Redis may have lost
what it had.
"""

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

RECORDS_AT_A_TIME = 500

CLOCK_SKEW = datetime.timedelta(seconds=2)
"""By how much the clocks of two processes may differ."""


class SentCommand(NamedTuple):
    """A command that was sent, or that failed before it was sent."""

    id: CommandId
    run_id: str
    """The run of Redis that it was for."""

    at: datetime.datetime
    """When it was sent, or shortly before."""


class MissedHits(NamedTuple):
    """A row of MissedRecord."""

    id: int
    hits: list[NewHits]
    command_id: CommandId | None
    """The id of the command to send again with these hits; None if they are in the slots."""

    run_id: str
    """The run of Redis that they were sent to."""

    missed_at: datetime.datetime


def make_records(
    sent: SentCommand, in_slots: Sequence[NewHits], in_doubt: Sequence[NewHits]
) -> Iterator[MissedRecord]:
    """
    Make rows for hits that Redis missed. Does not save them.

    The hits ``in_slots`` are in the tables, but not in the running totals of Redis. Redis may or
    may not have run the command with the hits ``in_doubt``.
    """
    counted = [hit for hit in in_slots if not hit.refusal]
    if counted:
        yield make_record_of_slots(counted)
    if in_doubt:
        yield MissedRecord(
            hits=_as_json(in_doubt),
            recorder=sent.id.recorder,
            sequence=sent.id.sequence,
            run_id=sent.run_id,
            missed_at=sent.at,
        )


def make_record_of_slots(hits: Sequence[NewHits]) -> MissedRecord:
    """Make a row for hits that are in the tables, but not in the running totals of Redis."""
    return MissedRecord(hits=_as_json(hits))


@pause_deadline()
def read_oldest() -> list[MissedHits]:
    """Read the oldest rows. Costs one query."""
    records = MissedRecord.objects.using(hits_alias()).order_by("pk")[:RECORDS_AT_A_TIME]
    return [
        MissedHits(
            record.pk,
            _from_json(record.hits),
            _command_id(record),
            record.run_id,
            record.missed_at,
        )
        for record in records
    ]


@pause_deadline()
def was_flushed_since(missed: MissedHits, partition: int) -> bool:
    """Return whether hits of the same run and partition were flushed after the command was sent."""
    return (
        FlushedBatch.objects.using(hits_alias())
        .filter(partition=partition, generation__startswith=f"{missed.run_id}:")
        .filter(flushed_at__gte=missed.missed_at - CLOCK_SKEW)
        .exists()
    )


@pause_deadline()
def drop(missed: Iterable[MissedHits]) -> None:
    """Delete the rows of hits that Redis has now. Costs one query."""
    records = MissedRecord.objects.using(hits_alias())
    records.filter(pk__in=[hits.id for hits in missed]).delete()


def _command_id(record: MissedRecord) -> CommandId | None:
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
    """Convert hits to JSON, without their visitors: these must not be stored."""
    return [
        [*hit.key, hit.day.isoformat(), hit.amount, *([hit.refusal] if hit.refusal else [])]
        for hit in hits
    ]
