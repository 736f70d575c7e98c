"""
Deliver to Redis what it missed while it was away.

A command in doubt was sent, but not answered. It is sent again, with the same number, to the same
keys: those of the run of Redis that it was sent to. So Redis runs it once, and a flush writes it
once, even if Redis has been restarted since.

That is so only if Redis still knows the commands of that run. If it is behind the tables, or has
lost a part of what it knew, the hits may be in the tables. Then they are dropped.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from django.db import connections

from django_hitcount.buffers.redis.keeping import build_discard_calls
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.link import BuildCommands, Link, Reply
from django_hitcount.buffers.redis.record_call import build_record_call
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.server import RedisServer, raise_failures
from django_hitcount.counters import group_items
from django_hitcount.counters.days import open_days
from django_hitcount.counters.hits import NewHits
from django_hitcount.db import ledger, seen_visitors
from django_hitcount.db.tables import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.outages import missed_records
from django_hitcount.outages.missed_records import HITS_AT_A_TIME, CommandId, MissedHits
from django_hitcount.outages.waits import pause_deadline

VISITORS_AT_A_TIME = 200
"""Visitors delivered in one round trip."""

LOST = "lost"
"""What find_commands.lua says instead of a generation if Redis has lost a part of it."""

logger = logging.getLogger("django_hitcount")


class Doubt(NamedTuple):
    """The hits of a command in doubt that fall into one partition."""

    record: MissedHits
    command_id: CommandId
    partition: int
    hits: Sequence[NewHits]


class CommandState(NamedTuple):
    """What Redis knows of a command in doubt."""

    generation: str
    """The generation of its run; "-" if none has begun, or LOST; "" until the next claim, if others
    have written there."""

    last: ledger.Applied
    """The last batch that was claimed. It is in the tables if no batch is set aside."""

    is_set_aside: bool
    """Whether a batch is set aside, so that it may not be in the tables yet."""

    last_command: int
    """The number of the recorder's last command."""

    run_id: str
    """The current run."""


class CatchUp:
    """Delivers missed records, and visitors who are only in the tables."""

    def __init__(self, redis: RedisServer, partitions: int, threshold: int) -> None:
        self._redis = redis
        self._partitions = partitions
        self._threshold = threshold

    def deliver_oldest(self) -> bool:
        """
        Deliver the oldest missed hits. A page waits for this, so a flush delivers all others.

        Returns False if it must wait for the end of a transaction.
        """
        if not connections[hits_alias()].get_autocommit():
            return False  # In a view's transaction, the rows would stay locked until its COMMIT.
        try:
            for piece in islice(_split(missed_records.read_oldest()), 1):
                self._deliver(piece)
        except DATABASE_ERRORS as exc:
            logger.warning("Hits that Redis missed cannot be delivered now: %s", exc)
        return True

    def deliver_all(self) -> int:
        """Deliver everything, piece by piece. Return how many records and visitors there were."""
        number = last = 0
        while missed := missed_records.read_oldest(after=last):
            for piece in _split(missed):
                number += self._deliver(piece)
            last = missed[-1].id
        return number + self._deliver_visitors()

    def _deliver(self, missed: Sequence[MissedHits]) -> int:
        """Deliver a few records, and drop them. Returns how many were dropped here."""
        doubts = [doubt for record in missed for doubt in self._doubts_of(record)]
        again, lost, undecided = self._decide(doubts)
        replies = self._send(lambda link: self._build_calls(again, missed, link.run_id))
        undecided |= {
            doubt.record.id
            for (doubt, _), reply in zip(again, replies, strict=False)
            if reply is None  # Redis has changed since.
        }
        done = [record for record in missed if record.id not in undecided]
        complete = [record for record in done if record.id not in lost]
        return missed_records.drop(record.id for record in complete) + sum(
            _drop_lost(record, lost[record.id]) for record in done if record.id in lost
        )

    def _decide(
        self, doubts: Sequence[Doubt]
    ) -> tuple[list[tuple[Doubt, str]], Counter[int], set[int]]:
        """
        Return the doubts to send again, and the generation that Redis knows of each; how many hits
        are lost, by the id of their record; and the ids of records to leave to the next flush.
        """
        known = self._find_commands(doubts)
        in_ledger = _read_ledger(doubts)
        again, unknown = [], []
        for doubt, found in zip(doubts, known, strict=True):
            if found.last_command >= doubt.command_id.number:
                continue  # Redis has run it.
            if _knows_all(doubt, found, in_ledger) is True:
                again.append((doubt, found.generation))
            else:
                unknown.append(doubt)
        # If another flusher has written a batch between the two reads, the ledger is ahead of what
        # Redis has answered. Then Redis now answers something else.
        lost: Counter[int] = Counter()
        undecided = set()
        for doubt, found in zip(unknown, self._find_commands(unknown), strict=True):
            if _knows_all(doubt, found, in_ledger) is False:
                lost[doubt.record.id] += sum(hit.amount for hit in doubt.hits)
            else:
                undecided.add(doubt.record.id)
        return again, lost, undecided

    def _doubts_of(self, record: MissedHits) -> Iterator[Doubt]:
        if record.command_id:
            for partition, hits in self._by_partition(record.hits).items():
                yield Doubt(record, record.command_id, partition, hits)

    def _find_commands(self, doubts: Sequence[Doubt]) -> list[CommandState]:
        """Ask Redis what it knows of commands. Costs a round trip."""
        calls = []
        for doubt in doubts:
            names = run_keys(doubt.partition, doubt.command_id.run_id)
            recorder = doubt.command_id.recorder
            keys = [names.sequence, names.pending, names.batch]
            calls.append(ScriptCall("find_commands", keys, [recorder]))
        if not calls:
            return []
        run_id, replies = self._redis.send_unguarded(lambda link: calls)
        return [
            CommandState(
                state.decode(), ledger.Applied(n, int(claim)), bool(is_set_aside), last, run_id
            )
            for state, n, claim, is_set_aside, last in raise_failures(replies)
        ]

    def _build_calls(
        self, again: Sequence[tuple[Doubt, str]], missed: Sequence[MissedHits], run_id: str
    ) -> list[ScriptCall]:
        """
        Return the commands to send again, and then calls that discard what is wrong in this run.

        These are totals without hits that were written into the slots, or sent to an earlier run,
        and kept numbers of visitors without those who came meanwhile.
        """
        calls = [
            build_record_call(
                run_keys(doubt.partition, doubt.command_id.run_id),
                doubt.hits,
                doubt.command_id,
                self._threshold,
                expected=generation,
            )
            for doubt, generation in again
        ]
        keys = {hit.key for record in missed for hit in record.hits}
        return [*calls, *build_discard_calls(self._partitions, keys, run_id)]

    def _deliver_visitors(self) -> int:
        """
        Deliver the visitors of open days who are only in the tables.

        They came while Redis was away, or before it was set up.
        """
        recorder, numbers, number = uuid.uuid4().hex, count(1), 0
        while rows := seen_visitors.read_oldest(open_days(), VISITORS_AT_A_TIME):
            ids = {pk: CommandId(recorder, next(numbers), "") for pk in rows}

            def build(link: Link, rows: Any = rows, ids: Any = ids) -> list[ScriptCall]:
                # All visitors of a call must have one counter and day. A call each is simplest.
                return [
                    build_record_call(
                        run_keys(hit.key.partition(self._partitions), link.run_id),
                        [hit],
                        ids[pk],
                        self._threshold,
                    )
                    for pk, hit in rows.items()
                ]

            self._send(build)
            seen_visitors.drop_rows(rows)
            number += len(rows)
        return number

    def _send(self, build: BuildCommands) -> list[Reply]:
        return raise_failures(self._redis.send_unguarded(build).replies)

    def _by_partition(self, hits: Sequence[NewHits]) -> dict[int, list[NewHits]]:
        return group_items([hit.key.partition(self._partitions) for hit in hits], hits)


def _split(missed: Iterable[MissedHits]) -> Iterator[list[MissedHits]]:
    """Split records into pieces with as many hits as one command may have."""
    piece: list[MissedHits] = []
    size = 0
    for record in missed:
        if piece and size + len(record.hits) > HITS_AT_A_TIME:
            yield piece
            piece, size = [], 0
        piece.append(record)
        size += len(record.hits)
    if piece:
        yield piece


@pause_deadline()
def _read_ledger(doubts: Iterable[Doubt]) -> dict[ledger.Generation, ledger.Applied]:
    """Read which batches of the doubts' runs and partitions are in the tables. Costs a query."""
    runs = {(doubt.partition, doubt.command_id.run_id) for doubt in doubts}
    return ledger.read_runs(runs) if runs else {}


def _knows_all(
    doubt: Doubt, known: CommandState, in_ledger: Mapping[ledger.Generation, ledger.Applied]
) -> bool | None:
    """
    Return whether Redis knows all commands of which a flusher ever had hits; None if not known yet.

    The ledger was read after Redis was asked, and has each generation before a flusher has hits of
    it. So Redis knows all of them if it has the only generation, is not behind the tables, and the
    tables have the last batch by the same claim. Otherwise Redis went back, and claimed other hits
    under that name. As long as a batch of an earlier run is set aside, that may still turn out.
    """
    if not known.generation:
        return None
    of_run = {
        generation: applied
        for (partition, generation), applied in in_ledger.items()
        if partition == doubt.partition and generation.startswith(f"{doubt.command_id.run_id}:")
    }
    applied = of_run.get(known.generation, ledger.Applied())
    has_lost = known.generation == LOST or not of_run.keys() <= {known.generation}
    is_other = applied.number == known.last.number and applied != known.last
    if has_lost or is_other or applied.number > known.last.number:
        return False
    may_be_other = known.is_set_aside and doubt.command_id.run_id != known.run_id
    return None if may_be_other and applied != known.last else True


def _drop_lost(record: MissedHits, lost: int) -> int:
    """Drop a record with ``lost`` hits. Return 1, or 0 if another process has dropped it."""
    number = missed_records.drop([record.id])
    if number:
        logger.error(
            "%d hits in doubt are dropped: Redis has lost what it knew, and they may be in the "
            "tables.",
            lost,
        )
    return number
