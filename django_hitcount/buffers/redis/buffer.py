"""The buffer in Redis: one script call takes a hit in and answers the total."""

from __future__ import annotations

import datetime
import itertools
import logging
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from django.db import connections
from django.utils import timezone

from django_hitcount import conf, signals
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.buffers.grouping import grouped, in_order
from django_hitcount.buffers.redis import claiming, sketches
from django_hitcount.buffers.redis.keys import PartitionKeys, RunKeys, run_keys, throttle_key
from django_hitcount.buffers.redis.positions import PositionReply, held_hashes, read_positions
from django_hitcount.buffers.redis.record_call import read_reply, record_call
from django_hitcount.buffers.redis.scripts import Build, Command, ScriptCall
from django_hitcount.buffers.redis.transport import Answers, RedisTransport, Reply, checked
from django_hitcount.counters.batches import (
    Batch,
    BufferState,
    FlushPosition,
    RecordResult,
)
from django_hitcount.counters.days import open_days
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey
from django_hitcount.counters.sketches import Sketch, SketchUnion
from django_hitcount.db import seen_visitors
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import AnswerLost, BufferUnavailable
from django_hitcount.outages import missed_records
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.command_ids import CommandId, CommandIdPool

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

VISITORS_AT_A_TIME = 200
"""Visitors told of in one round trip."""

TOTAL = re.compile(rb"-?\d{1,19}")

ALL_RUNS = [PartitionKeys(partition).runs for partition in range(conf.MOST_PARTITIONS)]

T = TypeVar("T")

logger = logging.getLogger("django_hitcount")


class RedisBuffer(Buffer):
    """
    Keeps hits in Redis until a flush.

    Recording and reading cost one round trip. While Redis is away, hits go straight into
    the slots; a Redis that is back is told before it is asked anything else.
    """

    def __init__(self) -> None:
        config = conf.get_config()
        self._partitions = config.partitions
        self._threshold = config.flush_threshold or 0
        self._total_ttl_seconds = config.total_ttl_seconds
        self._exchange = RedisTransport(
            config.cache_alias, timeout_seconds=config.redis_timeout_seconds
        )
        self._breaker = Breaker(
            f"Redis (cache alias {config.cache_alias!r})",
            timeout_seconds=self._exchange.timeout_seconds,
        )
        self._recorders = CommandIdPool()
        self._slots = DatabaseBuffer()
        self._has_news = False

    def record(self, hits: Sequence[NewHits]) -> list[RecordResult]:
        partitions = [hit.key.partition(self._partitions) for hit in hits]
        groups = grouped(partitions, hits)
        command_id = self._recorders.take()
        run_id = ""
        replies: list[Reply] = []
        in_slots: Mapping[int, Sequence[RecordResult]] = {}

        def build(run_id: str) -> list[ScriptCall]:
            return [
                record_call(run_keys(partition, run_id), group, command_id, self._threshold)
                for partition, group in groups.items()
            ]

        try:
            with self._breaker.guard() as is_back:
                self._greet(is_back)
                run_id, replies = self._exchange.run(build)
                checked(replies)
        except BufferUnavailable as exc:
            replies = replies or [BufferUnavailable(str(exc))] * len(groups)
            sent = missed_records.Sent(command_id, run_id, self._a_bit_before_now())
            in_slots = self._record_in_slots(groups, replies, sent)
        if not any(type(reply) is AnswerLost for reply in replies):
            self._recorders.give_back(command_id)
        return in_order(partitions, {**self._results(run_id, groups, replies), **in_slots})

    def _results(
        self, run_id: str, groups: Mapping[int, Sequence[NewHits]], replies: Sequence[Reply]
    ) -> dict[int, list[RecordResult]]:
        """What became of the hits of the partitions that Redis answered for."""
        found = {
            partition: read_reply(reply, group)
            for (partition, group), reply in zip(groups.items(), replies, strict=True)
            if not isinstance(reply, BufferUnavailable)
        }
        unloaded: dict[int, PositionReply] = {}
        for partition, (_, is_full, position) in found.items():
            if is_full:
                signals.partition_full.send_robust(type(self), partition=partition)
            if position:
                unloaded[partition] = position
        results = {partition: reply.results for partition, reply in found.items()}
        for partition, at in self._positions(run_id, unloaded).items():
            results[partition] = [result._replace(position=at) for result in results[partition]]
        return results

    def _positions(
        self, run_id: str, replies: Mapping[int, PositionReply]
    ) -> Mapping[int, FlushPosition]:
        try:
            return read_positions(self._run, run_id, replies) if replies else {}
        except BufferUnavailable:
            return {}

    def _record_in_slots(
        self,
        groups: Mapping[int, Sequence[NewHits]],
        replies: Sequence[Reply],
        sent: missed_records.Sent,
    ) -> dict[int, list[RecordResult]]:
        """
        Write what Redis rejected into the slots, and keep what it may have run.

        The tables judge visitors: they know of those since Redis went away.
        """
        failed = {
            partition: type(reply) is AnswerLost
            for partition, reply in zip(groups, replies, strict=True)
            if isinstance(reply, BufferUnavailable)
        }
        rejected = [hit for p, is_lost in failed.items() if not is_lost for hit in groups[p]]
        in_doubt = [hit for p, is_lost in failed.items() if is_lost for hit in groups[p]]
        results = iter(self._slots.write(rejected, in_doubt, partial(missed_records.notes, sent)))
        written_first = sorted(failed, key=failed.__getitem__)
        return {p: [*islice(results, len(groups[p]))] for p in written_first}

    def _a_bit_before_now(self) -> datetime.datetime:
        """Not after a command was sent that failed by now."""
        return timezone.now() - datetime.timedelta(seconds=self._exchange.timeout_seconds)

    def read_state(self, keys: Collection[CounterKey]) -> BufferState:
        groups = self._by_partition(keys, lambda key: key)

        def build(run_id: str) -> list[Command]:
            commands = []
            for partition, group in groups.items():
                names = run_keys(partition, run_id)
                totals = [names.total(key.text) for key in group]
                commands.append(("MGET", names.epoch, names.batch_id, names.runs, *totals))
            return commands

        try:
            run_id, replies = self._run_for_run(build)
        except BufferUnavailable:
            return BufferState()
        totals_by_key: dict[CounterKey, int] = {}
        positions: dict[int, PositionReply] = {}
        for (partition, group), reply in zip(groups.items(), replies, strict=True):
            positions[partition] = PositionReply(*reply[:3])
            totals_by_key |= _known(group, reply[3:])
        return BufferState(totals=totals_by_key, positions=self._positions(run_id, positions))

    def complete_totals(
        self, sums: Mapping[CounterKey, int], *, state: BufferState, keep: bool
    ) -> Mapping[CounterKey, int]:
        groups = self._by_partition(sums, lambda key: key)
        asked = {p: group for p, group in groups.items() if p in state.positions}
        totals = {key: sums[key] for p, group in groups.items() if p not in asked for key in group}
        ttl = self._total_ttl_seconds if keep else 0
        calls = []
        for partition, group in asked.items():
            position = state.positions[partition]
            names = run_keys(partition, position.run_id)
            hashes = held_hashes(position, daily=False)
            args: list[str | int | bytes] = [position.epoch, len(hashes), ttl]
            for key in group:
                args += [key.text, sums[key]]
            keys = [names.epoch, *hashes, *(names.total(key.text) for key in group)]
            calls.append(ScriptCall("complete", keys, args))
        try:
            replies = self._run(calls)
        except BufferUnavailable:
            return sums
        for group, completed in zip(asked.values(), replies, strict=True):
            if completed is not None:
                totals |= _known(group, completed)
        return totals

    def complete_daily_total(
        self, key: CounterKey, *, days: Sequence[datetime.date], total: int, state: BufferState
    ) -> int | None:
        partition = key.partition(self._partitions)
        position = state.positions.get(partition)
        if position is None:
            return total
        hashes = held_hashes(position, daily=True)
        names = run_keys(partition, position.run_id)
        call = ScriptCall(
            "complete_days", [names.epoch, *hashes], [position.epoch, *map(key.on, days)]
        )
        try:
            (held,) = self._run([call])
        except BufferUnavailable:
            return total
        return None if held is None else total + int(held)

    def drop_totals(self, keys: Collection[CounterKey]) -> None:
        self._run_for_run(lambda run_id: self._drop_totals_calls(keys, run_id))

    def quick_partitions(
        self, objects: Collection[tuple[int, str]], *, counters: int
    ) -> Collection[int] | None:
        partitions = [*self._by_partition(objects, lambda pair: CounterKey(*pair, ""))]

        def build(run_id: str) -> list[ScriptCall | Command]:
            names = [run_keys(partition, run_id) for partition in partitions]
            sizes = [ScriptCall("sizes", own.of_objects) for own in names]
            return [*sizes, *(("MGET", own.runs) for own in names)]

        run_id, replies = self._run_for_run(build)
        sizes, runs = replies[: len(partitions)], replies[len(partitions) :]
        has_earlier = any(claiming.runs_in(found) - {run_id} for (found,) in runs)
        waiting = max(map(sum, zip(*sizes, strict=True)), default=0)
        if has_earlier or missed_records.oldest_notes() or waiting > counters:
            return None
        return partitions

    def forget(self, objects: Collection[tuple[int, str]]) -> None:
        """
        Drop running totals and sketches.

        Pending hits stay where they are: their fields can be found only by walking through all
        that a partition holds. A flush brings them to the tables, from where they are deleted.
        """
        counters = conf.get_config().counters
        groups = self._by_partition(objects, lambda pair: CounterKey(*pair, ""))
        sketches_by_partition = sketches.names_of(self._run, groups)

        def build(run_id: str) -> list[ScriptCall]:
            calls = []
            for partition, pairs in groups.items():
                names = run_keys(partition, run_id)
                totals = [CounterKey(*pair, counter).text for pair in pairs for counter in counters]
                gone = [*map(names.total, totals), *sketches_by_partition[partition]]
                calls.append(ScriptCall("drop_totals", [names.epoch, *gone]))
            return calls

        if groups:
            self._run_for_run(build)

    def partitions(self) -> Iterable[int]:
        """All partitions that may hold hits, whatever PARTITIONS was; costs a round trip."""
        self._breaker.try_now()
        (runs,) = self._run([("MGET", *ALL_RUNS)])
        return [p for p, found in enumerate(runs) if found or p < self._partitions]

    def claim(self, partition: int) -> Batch | None:
        found = claiming.claim(self._run_for_run, partition)
        return claiming.read(self._run, found) if found else None

    def settle(self, batch: Batch) -> bool:
        answers = self._run_for_run(lambda run_id: [claiming.settle_call(batch, run_id)])
        if answers.run_id != batch.run_id:
            # A flusher may have read more than the snapshot has that totals were loaded with.
            self.drop_totals(batch.totals)
        return bool(answers.replies[0])

    def merge_sketches(
        self, known: Mapping[DailyVisitorsKey, bytes]
    ) -> Mapping[DailyVisitorsKey, Sketch]:
        groups = self._by_partition(known, lambda visitors: visitors.key)
        return {
            key: sketch
            for p, keys in groups.items()
            for key, sketch in sketches.merge(
                self._run, PartitionKeys(p), {key: known[key] for key in keys}
            ).items()
        }

    def visitors(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Mapping[DailyVisitorsKey, int]:
        groups = self._by_partition(keys, lambda key: key)
        try:
            return sketches.counts(self._run, groups, first_day, last_day)
        except BufferUnavailable:
            return {}

    def unions(self, unions: Sequence[SketchUnion]) -> Sequence[int]:
        names = [PartitionKeys(union.key.partition(self._partitions)) for union in unions]
        try:
            return sketches.unions(self._run, names, unions)
        except BufferUnavailable:
            return ()

    def catch_up(self) -> int:
        count = 0
        while notes := missed_records.oldest_notes():
            self._tell(notes)
            count += len(notes)
        return count + self._tell_visitors()

    def _tell_visitors(self) -> int:
        """
        Tell Redis of the visitors of open days whom only the tables know.

        They came while Redis was away, or before it was set up.
        """
        using, recorder, numbers = hits_alias(), uuid.uuid4(), itertools.count(1)
        told = 0
        while rows := seen_visitors.read_oldest(open_days(), VISITORS_AT_A_TIME, using=using):
            numbered = {pk: CommandId(recorder, next(numbers)) for pk in rows}

            def build(run_id: str, rows: Any = rows, numbered: Any = numbered) -> list[ScriptCall]:
                # A call is for hits of one counter and day: one for each visitor is the simplest.
                return [
                    record_call(
                        self._keys_of(hit.key, run_id), [hit], numbered[pk], self._threshold
                    )
                    for pk, hit in rows.items()
                ]

            checked(self._exchange.run(build).replies)
            seen_visitors.drop_rows(rows, using=using)
            told += len(rows)
        return told

    def _tell(self, notes: Sequence[missed_records.Note]) -> None:
        flushed = self._maybe_flushed(notes)
        checked(self._exchange.run(lambda run_id: self._news_of(notes, flushed, run_id)).replies)
        missed_records.drop(notes)

    def _maybe_flushed(self, notes: Sequence[missed_records.Note]) -> set[int]:
        """Notes on commands in doubt whose hits may be in the tables, if Redis has run them."""
        return {
            note.id
            for note in notes
            if note.numbered
            for partition in self._by_partition(note.hits, lambda hit: hit.key)
            if missed_records.was_flushed_since(note, partition)
        }

    def _news_of(
        self, notes: Sequence[missed_records.Note], flushed: Collection[int], run_id: str
    ) -> list[ScriptCall]:
        """Commands in doubt once more, and what the running totals do not know."""
        calls = []
        stale = set()
        for note in notes:
            groups = self._by_partition(note.hits, lambda hit: hit.key)
            if not note.numbered:
                stale |= {hit.key for hit in note.hits}
            elif note.run_id != run_id and note.id in flushed:
                logger.error("Redis lost its memory; %d hits in doubt are dropped", len(note.hits))
            else:
                calls += [
                    record_call(run_keys(p, run_id), group, note.numbered, self._threshold)
                    for p, group in groups.items()
                ]
        return [*calls, *self._drop_totals_calls(stale, run_id)]

    def _drop_totals_calls(self, keys: Iterable[CounterKey], run_id: str) -> list[ScriptCall]:
        calls = []
        for partition, group in self._by_partition(keys, lambda key: key).items():
            names = run_keys(partition, run_id)
            totals = [names.total(key.text) for key in group]
            calls.append(ScriptCall("drop_totals", [names.epoch, *totals]))
        return calls

    def _keys_of(self, key: CounterKey, run_id: str) -> RunKeys:
        return run_keys(key.partition(self._partitions), run_id)

    def _run_for_run(self, build: Build) -> Answers:
        """All replies to commands for the run of Redis that is on, or BufferUnavailable."""
        with self._breaker.guard() as is_back:
            self._greet(is_back)
            answers = self._exchange.run(build)
            checked(answers.replies)
            return answers

    def _run(self, commands: Sequence[ScriptCall | Command]) -> list[Reply]:
        """All replies, or BufferUnavailable."""
        return self._run_for_run(lambda run_id: commands).replies if commands else []

    def _greet(self, is_back: bool) -> None:
        """Tell a Redis that is back what it missed_records, before it answers with stale totals."""
        self._has_news = self._has_news or is_back
        if not self._has_news or not connections[hits_alias()].get_autocommit():
            return  # A view's transaction would lock the notes; its hit comes after COMMIT.
        self._has_news = False
        try:
            self._tell(
                missed_records.oldest_notes()
            )  # A page waits: what is left is for the next flush.
        except DATABASE_ERRORS as exc:
            logger.warning("Redis is not told yet what it missed: %s", exc)

    def _by_partition(
        self, items: Iterable[T], key_of: Callable[[T], CounterKey]
    ) -> dict[int, list[T]]:
        groups: dict[int, list[T]] = defaultdict(list)
        for item in items:
            groups[key_of(item).partition(self._partitions)].append(item)
        return groups

    def check(self) -> list[CheckMessage]:
        from django_hitcount.buffers.redis import checks

        return [*checks.check(self._exchange)]

    def admit(self, name: str, milliseconds: int) -> bool:
        command = ("SET", throttle_key(name), "1", "NX", "PX", milliseconds)
        (reply,) = self._run([command])
        return reply is not None


def _known(
    keys: Iterable[CounterKey], totals: Iterable[bytes | int | None]
) -> dict[CounterKey, int]:
    return {key: int(total) for key, total in zip(keys, totals, strict=True) if _is_total(total)}


def _is_total(reply: bytes | int | None) -> TypeGuard[bytes | int]:
    """Whether it is a total, and nothing that somebody else has put there."""
    return isinstance(reply, int) or (reply is not None and TOTAL.fullmatch(reply) is not None)
