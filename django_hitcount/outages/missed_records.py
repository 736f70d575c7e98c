"""
Missed records: the hits that Redis missed while it was away. The database keeps them until they are
delivered to Redis, which may have been restarted since: see CommandId.run_id.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django_hitcount.counters import split
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.tables import MissedRecord, hits_alias
from django_hitcount.outages.waits import pause_deadline

HITS_AT_A_TIME = 500
"""The most hits of one record, and of one round trip that records hits. They take Redis about 10
ms."""

RECORDS_AT_A_TIME = 100
"""Rows that are read at a time."""


class CommandId(NamedTuple):
    """The id of a record command: Redis runs each id at most once."""

    recorder: str
    """A random id of 32 hexadecimal digits. Each recorder sends one command at a time."""

    number: int
    """A number that the recorder uses once. It grows."""

    run_id: str
    """The run of Redis that the command was for: one that started since may lack what this had."""


class MissedHits(NamedTuple):
    """A row of MissedRecord."""

    id: int
    hits: list[NewHits]
    command_id: CommandId | None
    """The id of the command to send again with these hits; None if they are in the slots."""


def make_records(
    command_id: CommandId | None, in_slots: Sequence[NewHits], in_doubt: Sequence[NewHits]
) -> Iterator[MissedRecord]:
    """
    Make rows for hits that Redis missed. Does not save them.

    The hits ``in_slots`` are in the tables, but not in the running totals of Redis. Redis may or
    may not have run the command with the hits ``in_doubt``.
    """
    counted = [hit for hit in in_slots if not hit.refusal]
    if counted:
        yield MissedRecord(hits=_as_json(counted))
    if in_doubt and command_id:
        yield MissedRecord(hits=_as_json(in_doubt), command_id=command_id)


def save_of_totals(keys: Sequence[CounterKey]) -> list[int]:
    """
    Save rows that let a flush drop the totals of ``keys`` in Redis. Return their ids.

    Costs a statement per 500 counters.
    """
    ids = []
    for some in split([NewHits(key, day_of(), 0) for key in keys], HITS_AT_A_TIME):
        record = MissedRecord(hits=_as_json(some))
        record.save(using=hits_alias(), force_insert=True)
        ids.append(record.pk)
    return ids


@pause_deadline()
def read_oldest(*, after: int = 0) -> list[MissedHits]:
    """Read the oldest rows, of those with a greater id than ``after``. Costs one query."""
    records = MissedRecord.objects.using(hits_alias()).filter(pk__gt=after).order_by("pk")
    return [
        MissedHits(
            record.pk,
            _from_json(record.hits),
            CommandId(*record.command_id) if record.command_id else None,
        )
        for record in records[:RECORDS_AT_A_TIME]
    ]


@pause_deadline()
def drop(ids: Iterable[int]) -> int:
    """Delete rows, and return how many there were. Costs one query."""
    number, _ = MissedRecord.objects.using(hits_alias()).filter(pk__in=[*ids]).delete()
    return number


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
