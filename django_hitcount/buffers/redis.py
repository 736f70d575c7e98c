"""The buffer in Redis: one script call takes a hit in and answers the total."""

from __future__ import annotations

import datetime
import itertools
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from django.db import connections

from django_hitcount import conf, seen, signals
from django_hitcount.breaker import Breaker
from django_hitcount.buffers import missed, sketches
from django_hitcount.buffers.base import Batch, Buffer, Glimpse, Mark, Sketch, SketchUnion
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.buffers.exchange import Call, Command, Exchange, Reply, checked
from django_hitcount.buffers.keys import PARTITION_COUNTS, PartitionKeys, throttle_key
from django_hitcount.buffers.record_call import record_call
from django_hitcount.buffers.recorders import Numbered, Recorders
from django_hitcount.counters import (
    CounterKey,
    Hits,
    VisitorsKey,
    hits_alias,
    open_days,
    parse_daily,
    parse_key,
    parse_refused,
    parse_visitors,
)
from django_hitcount.exceptions import AnswerLost, BufferUnavailable
from django_hitcount.transactions import DATABASE_ERRORS

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

VISITORS_AT_A_TIME = 200
"""Visitors told of in one round trip."""

SCAN_COUNT = 2000
"""Fields read at a time from a batch: each answer is well within the timeout."""

REPLICA_SHARE = 0.4
"""Part of the timeout that replicas have: Redis looks at the clock ten times a second only."""

HITS_LIMIT = 10**15
"""Hits of one counter in one batch. More are malformed: a bigint is to hold thousands of them."""

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
        self._keys = [PartitionKeys(partition) for partition in range(config.partitions)]
        self._exchange = Exchange(config.cache_alias, timeout_seconds=config.redis_timeout_seconds)
        self._breaker = Breaker(f"Redis (cache alias {config.cache_alias!r})")
        self._recorders = Recorders()
        self._slots = DatabaseBuffer()
        self._has_news = False

    def record(self, hits: Sequence[Hits]) -> Glimpse:
        groups = [*self._by_partition(hits, lambda hit: hit.key).items()]
        numbered = self._recorders.take()
        calls = [self._record_call(p, group, numbered) for p, group in groups]
        replies: list[Reply] = []
        repeats: Sequence[CounterKey] = ()
        try:
            with self._breaker.guard() as is_back:
                self._greet(is_back)
                replies = self._exchange.run(calls)
                checked(replies)
        except BufferUnavailable as exc:
            replies = replies or [BufferUnavailable(str(exc))] * len(calls)
            repeats = self._record_in_slots(groups, replies, numbered)
        if not any(type(reply) is AnswerLost for reply in replies):
            self._recorders.give_back(numbered)
        glimpse = self._glimpse_of(groups, replies)
        return replace(glimpse, repeats=[*glimpse.repeats, *repeats]) if repeats else glimpse

    def _record_call(self, partition: int, hits: Sequence[Hits], numbered: Numbered) -> Call:
        return record_call(self._keys[partition], hits, numbered, self._threshold)

    def _glimpse_of(
        self, groups: Sequence[tuple[int, Sequence[Hits]]], replies: Sequence[Reply]
    ) -> Glimpse:
        totals: dict[CounterKey, int] = {}
        marks: dict[int, Mark] = {}
        repeats: list[CounterKey] = []
        for (partition, hits), reply in zip(groups, replies, strict=True):
            if isinstance(reply, BufferUnavailable):
                continue
            is_full, repeated = reply[0], reply[1]
            for hit, total in zip(hits, reply[2:], strict=False):
                if total is not None:
                    totals[hit.key] = int(total)
            for number in repeated:
                repeats.append(hits[number - 1].key)
            if len(reply) > len(hits) + 2:
                marks[partition] = _mark(*reply[-2:])
            if is_full:
                signals.partition_full.send_robust(type(self), partition=partition)
        return Glimpse(totals=totals, marks=marks, repeats=repeats)

    def _record_in_slots(
        self,
        groups: Sequence[tuple[int, Sequence[Hits]]],
        replies: Sequence[Reply],
        numbered: Numbered,
    ) -> Sequence[CounterKey]:
        """
        Write what Redis refused into the slots, and keep what it may have run.

        Repeats are judged by the tables, which know of the visitors since Redis went away.
        Returns the counters whose hit is one.
        """
        refused: list[Hits] = []
        doubtful: list[Hits] = []
        for (_, group), reply in zip(groups, replies, strict=True):
            if isinstance(reply, AnswerLost):
                doubtful += group
            elif isinstance(reply, BufferUnavailable):
                refused += group
        return self._slots.write(refused, doubtful, partial(missed.notes, numbered))

    def glimpse(self, keys: Collection[CounterKey]) -> Glimpse:
        groups = self._by_partition(keys, lambda key: key)
        commands: list[Command] = []
        for partition, group in groups.items():
            names = self._keys[partition]
            totals = [names.total(key.text) for key in group]
            commands.append(("MGET", names.epoch, names.batch_id, *totals))
        try:
            replies = self._run(commands)
        except BufferUnavailable:
            return Glimpse()
        totals_by_key: dict[CounterKey, int] = {}
        marks: dict[int, Mark] = {}
        for (partition, group), (epoch, batch_id, *known) in zip(
            groups.items(), replies, strict=True
        ):
            marks[partition] = _mark(epoch, batch_id)
            totals_by_key |= _known(group, known)
        return Glimpse(totals=totals_by_key, marks=marks)

    def complete(
        self,
        sums: Mapping[CounterKey, int],
        applied: Collection[uuid.UUID],
        glimpse: Glimpse,
        *,
        keep: bool,
    ) -> Mapping[CounterKey, int]:
        groups = self._by_partition(sums, lambda key: key)
        asked = {p: group for p, group in groups.items() if p in glimpse.marks}
        totals = {key: sums[key] for p, group in groups.items() if p not in asked for key in group}
        ttl = self._total_ttl_seconds if keep else 0
        calls = []
        for partition, group in asked.items():
            names, mark = self._keys[partition], glimpse.marks[partition]
            args: list[str | int] = [mark.epoch, int(mark.batch_id in applied), ttl]
            for key in group:
                args += [key.text, sums[key]]
            keys = [names.epoch, names.pending, names.batch]
            calls.append(Call("complete", [*keys, *(names.total(key.text) for key in group)], args))
        try:
            replies = self._run(calls)
        except BufferUnavailable:
            return sums
        for group, known in zip(asked.values(), replies, strict=True):
            totals |= _known(group, known or [])
        return totals

    def complete_days(
        self,
        key: CounterKey,
        days: Sequence[datetime.date],
        total: int,
        applied: Collection[uuid.UUID],
        glimpse: Glimpse,
    ) -> int | None:
        partition = key.partition(self._partitions)
        if partition not in glimpse.marks:
            return total
        names, mark = self._keys[partition], glimpse.marks[partition]
        call = Call(
            "complete_days",
            [names.epoch, names.pending_daily, names.batch_daily],
            [mark.epoch, int(mark.batch_id in applied), *map(key.on, days)],
        )
        try:
            (held,) = self._run([call])
        except BufferUnavailable:
            return total
        return None if held is None else total + int(held)

    def forget(self, objects: Collection[tuple[int, str]]) -> Collection[int]:
        counters = conf.get_config().counters
        groups = self._by_partition(objects, lambda pair: CounterKey(*pair, ""))
        sketches_by_partition = sketches.names_of(self._run, groups)
        calls = []
        for partition, pairs in groups.items():
            totals = [CounterKey(*pair, counter) for pair in pairs for counter in counters]
            texts = [f"{content_type_id}:{object_id}" for content_type_id, object_id in pairs]
            gone = sketches_by_partition[partition]
            calls.append(self._forget_call(partition, totals, gone, texts))
        replies = self._run(calls)
        return [p for p, batch_id in zip(groups, replies, strict=True) if batch_id]

    def _forget_call(
        self,
        partition: int,
        totals: Iterable[CounterKey],
        more: Iterable[str] = (),
        objects: Sequence[str] = (),
    ) -> Call:
        names = self._keys[partition]
        gone = [*(names.total(key.text) for key in totals), *more]
        return Call("forget", [names.batch_id, names.epoch, *names.of_objects, *gone], objects)

    def partitions(self) -> Iterable[int]:
        """All partitions that any value of PARTITIONS has had; costs a round trip or two."""
        self._breaker.try_now()
        (counts,) = self._run([("SMEMBERS", PARTITION_COUNTS)])
        known = {int(count) for count in counts}
        if self._partitions not in known:
            # A full Redis refuses this, and is to be flushed all the same.
            self._exchange.run([("SADD", PARTITION_COUNTS, self._partitions)])
        return range(max(self._partitions, *known, 0))

    def claim(self, partition: int) -> Batch | None:
        names = PartitionKeys(partition)
        new_id = str(uuid.uuid4()).encode()
        keys = [names.batch_id, names.epoch, *names.pendings, *names.batches]
        call = Call("claim", keys, [new_id.decode()])
        batch_id, info = self._run([call, ("INFO", "replication")])
        if batch_id is None:
            return None
        if b"connected_slaves:0" not in info:
            self._await_replica(names)
        totals, odd = _read_fields(parse_key, self._scan(names.batch))
        daily, odd_daily = _read_fields(parse_daily, self._scan(names.batch_daily))
        refused, odd_refused = _read_fields(parse_refused, self._scan(names.batch_refused))
        touched, odd_touched = _read_fields(parse_visitors, self._scan(names.batch_visitors))
        return Batch(
            id=uuid.UUID(batch_id.decode()),
            partition=partition,
            totals=totals,
            daily=daily,
            refused=refused,
            visitors=sketches.read(self._run, names, touched),
            malformed=[*odd, *odd_daily, *odd_refused, *odd_touched],
            is_left_over=batch_id != new_id,
        )

    def _await_replica(self, names: PartitionKeys) -> None:
        """
        Wait until a replica has the claim.

        A replica that took over without it would offer the hits for a second flush under
        another id. WAIT looks at what its own connection wrote last: hence the INCR.
        """
        milliseconds = int(self._exchange.timeout_seconds * REPLICA_SHARE * 1000)
        _, replicas = self._run([("INCR", names.epoch), ("WAIT", 1, milliseconds)])
        if replicas < 1:
            raise BufferUnavailable(
                f"No replica of Redis confirmed a claim within {milliseconds} ms. The batch is "
                "set aside and left for the next flush; see to the replication."
            )

    def _scan(self, name: str) -> Iterable[tuple[bytes, bytes]]:
        cursor: bytes | int = 0
        while True:
            ((cursor, flat),) = self._run([("HSCAN", name, cursor, "COUNT", SCAN_COUNT)])
            yield from zip(flat[::2], flat[1::2], strict=True)
            if int(cursor) == 0:
                return

    def settle(self, batch: Batch) -> bool:
        names = PartitionKeys(batch.partition)
        call = Call(
            "settle",
            [names.batch_id, names.epoch, names.malformed, *names.batches],
            [str(batch.id), *batch.malformed],
        )
        (settled,) = self._run([call])
        return bool(settled)

    def merge_sketches(self, known: Mapping[VisitorsKey, bytes]) -> Mapping[VisitorsKey, Sketch]:
        groups = self._by_partition(known, lambda visitors: visitors.key)
        return {
            key: sketch
            for p, keys in groups.items()
            for key, sketch in sketches.merge(
                self._run, self._keys[p], {key: known[key] for key in keys}
            ).items()
        }

    def visitors(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Mapping[VisitorsKey, int]:
        groups = self._by_partition(keys, lambda key: key)
        try:
            return sketches.counts(self._run, groups, first_day, last_day)
        except BufferUnavailable:
            return {}

    def unions(self, unions: Sequence[SketchUnion]) -> Sequence[int]:
        names = [self._keys[union.key.partition(self._partitions)] for union in unions]
        try:
            return sketches.unions(self._run, names, unions)
        except BufferUnavailable:
            return ()

    def catch_up(self) -> int:
        count = 0
        while notes := missed.oldest_notes():
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
        while rows := seen.oldest(open_days(), VISITORS_AT_A_TIME, using=using):
            # A call is for hits of one counter and day: one for each visitor is the simplest.
            groups = self._by_partition(rows.values(), lambda hit: hit.key)
            calls = [
                self._record_call(partition, [hit], Numbered(recorder, next(numbers)))
                for partition, hits in groups.items()
                for hit in hits
            ]
            self._exchange.run_all(calls)
            seen.drop(rows, using=using)
            told += len(rows)
        return told

    def _tell(self, notes: Sequence[missed.Note]) -> None:
        self._exchange.run_all(self._news_of(notes))
        missed.drop(notes)

    def _news_of(self, notes: Sequence[missed.Note]) -> list[Call]:
        """Commands in doubt once more, and what the running totals do not know."""
        calls = []
        stale = set()
        for note in notes:
            if note.numbered:
                groups = self._by_partition(note.hits, lambda hit: hit.key)
                calls += [self._record_call(p, g, note.numbered) for p, g in groups.items()]
            else:
                stale |= {hit.key for hit in note.hits}
        totals = self._by_partition(stale, lambda key: key)
        return calls + [self._forget_call(p, keys) for p, keys in totals.items()]

    def _run(self, commands: Sequence[Call | Command]) -> list[Reply]:
        """All replies, or BufferUnavailable."""
        if not commands:
            return []
        with self._breaker.guard() as is_back:
            self._greet(is_back)
            return self._exchange.run_all(commands)

    def _greet(self, is_back: bool) -> None:
        """Tell a Redis that is back what it missed, before it answers with stale totals."""
        self._has_news = self._has_news or is_back
        if not self._has_news or connections[hits_alias()].in_atomic_block:
            return  # A view's transaction would lock the notes; its hit comes after COMMIT.
        self._has_news = False
        try:
            self._tell(missed.oldest_notes())  # A page waits: what is left is for the next flush.
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
        from django_hitcount.buffers import redis_checks

        return [*redis_checks.check(self._exchange)]

    def admit(self, name: str, milliseconds: int) -> bool:
        command = ("SET", throttle_key(name), "1", "NX", "PX", milliseconds)
        (reply,) = self._run([command])
        return reply is not None


def _mark(epoch: bytes | None, batch_id: bytes | None) -> Mark:
    return Mark(int(epoch or 0), uuid.UUID(batch_id.decode()) if batch_id else None)


def _known(
    keys: Iterable[CounterKey], totals: Iterable[bytes | int | None]
) -> dict[CounterKey, int]:
    return {key: int(total) for key, total in zip(keys, totals, strict=False) if total is not None}


def _read_fields(
    parse: Callable[[str], T], pairs: Iterable[tuple[bytes, bytes]]
) -> tuple[dict[T, int], list[bytes]]:
    """The amounts by parsed field, and the fields that are malformed."""
    amounts: dict[T, int] = {}
    malformed: list[bytes] = []
    for field, value in pairs:
        try:
            amounts[parse(field.decode())] = _hits(value)
        except ValueError:
            malformed.append(field)
    return amounts, malformed


def _hits(value: bytes) -> int:
    hits = int(value)
    if abs(hits) > HITS_LIMIT:
        raise ValueError(f"{hits} hits cannot be")
    return hits
