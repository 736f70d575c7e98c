"""
The buffer in Redis. One script call takes a hit in and returns the total.

A run is the time of a Redis server from one start to the next. After a restart, Redis may be in an
older state, so the hits of each run have their own keys.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from django_hitcount import conf, signals
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.buffers.grouping import (
    group_by_partition,
    group_items,
    restore_order,
    split,
)
from django_hitcount.buffers.redis import (
    claiming,
    deleted_objects,
    held_days,
    kept_visitors,
    sketches,
    waiting,
)
from django_hitcount.buffers.redis.catching_up import CatchUp
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.kept_visitors import build_drops
from django_hitcount.buffers.redis.keys import PartitionKeys
from django_hitcount.buffers.redis.page_reads import PageRead, read_for_page
from django_hitcount.buffers.redis.record_call import HITS_AT_A_TIME, build_record_calls, read_reply
from django_hitcount.buffers.redis.scripts import BuildCommands
from django_hitcount.buffers.redis.totals import RunningTotals
from django_hitcount.buffers.redis.transport import RedisTransport, RunReplies
from django_hitcount.counters.batches import (
    Batch,
    BufferState,
    FlushPosition,
    HeldDays,
    RecordResult,
    Waiting,
)
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.page_numbers import (
    BufferNumbers,
    DayInTable,
    LastDays,
    SpanCount,
    Wanted,
)
from django_hitcount.counters.sketches import Sketch, SketchUnion
from django_hitcount.exceptions import AnswerLost, BufferUnavailable
from django_hitcount.outages import missed_records
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.command_ids import CommandIdPool
from django_hitcount.outages.missed_records import SentCommand

if TYPE_CHECKING:
    from django.core.checks import CheckMessage


class RedisBuffer(Buffer):
    """
    Keeps hits in Redis until a flush.

    Recording and reading cost one round trip. While Redis is away, hits are written to the slots at
    once. When Redis is back, it first gets what it missed. base.py describes the methods of Buffer.
    """

    merges_sketches = True

    def __init__(self) -> None:
        config = conf.get_config()
        self._partitions = config.partitions
        self._threshold = config.flush_threshold or 0
        self._transport = RedisTransport(
            config.cache_alias, timeout_seconds=config.redis_timeout_seconds
        )
        self._breaker = Breaker(
            f"Redis (cache alias {config.cache_alias!r})",
            timeout_seconds=self._transport.timeout_seconds,
        )
        self._catch_up = CatchUp(
            self._transport, partitions=self._partitions, threshold=self._threshold
        )
        self.redis = GuardedRedis(self._transport, self._breaker, self._catch_up.deliver_if_back)
        self._totals = RunningTotals(
            self.redis, partitions=self._partitions, ttl_seconds=config.total_ttl_seconds
        )
        self._command_ids = CommandIdPool()
        self._slots = DatabaseBuffer()

    def record(self, hits: Sequence[NewHits]) -> list[RecordResult]:
        """Costs a round trip per 500 hits, each with a timeout of its own."""
        pieces = split(hits, HITS_AT_A_TIME)
        return [*chain(*(self._record(some, None)[0] for some in pieces))]

    def record_and_read(
        self, hits: Sequence[NewHits], wanted: Wanted
    ) -> tuple[list[RecordResult], BufferNumbers]:
        reading = read_for_page(wanted, self._partitions)
        results, sent = self._record(hits, reading)
        return results, reading.convert(self._totals, *sent)

    def _record(
        self, hits: Sequence[NewHits], reading: PageRead | None
    ) -> tuple[list[RecordResult], RunReplies]:
        """Record hits, and read something after that in the same round trip."""
        partitions = [hit.key.partition(self._partitions) for hit in hits]
        groups = group_items(partitions, hits)
        command_id = self._command_ids.take()
        build: BuildCommands = partial(build_record_calls, groups, command_id, self._threshold)
        if reading:
            build = reading.after(build)
        sent = self.redis.try_to_send(build, commands=len(groups))
        results, failed = self._read_results(groups, sent)
        if failed:
            results |= self._record_in_slots(groups, failed, SentCommand(command_id, sent.run_id))
        if AnswerLost not in map(type, failed.values()):
            self._command_ids.give_back(command_id)
        return restore_order(partitions, results), sent

    def _read_results(
        self, groups: Mapping[int, Sequence[NewHits]], sent: RunReplies
    ) -> tuple[dict[int, list[RecordResult]], dict[int, BufferUnavailable]]:
        """
        Return the results of the hits by partition, and why the other partitions have none.

        If a total is unloaded, Redis does not know it. The results then have the position of the
        partition, so where it is between claims and settles. With it, the total can be loaded.
        """
        results, failed, unloaded = {}, {}, {}
        replies = sent.replies[: len(groups)]  # Those to reads of the page may follow.
        for (partition, hits), reply in zip(groups.items(), replies, strict=True):
            if isinstance(reply, BufferUnavailable):
                failed[partition] = reply
                continue
            results[partition], is_full, position = read_reply(reply, hits)
            if is_full:
                signals.partition_full.send_robust(type(self), partition=partition)
            if position:
                unloaded[partition] = position
        if unloaded:
            for partition, at in self._totals.read_positions(sent.run_id, unloaded).items():
                results[partition] = [result._replace(position=at) for result in results[partition]]
        return results, failed

    def _record_in_slots(
        self,
        groups: Mapping[int, Sequence[NewHits]],
        failed: Mapping[int, BufferUnavailable],
        command: SentCommand,
    ) -> dict[int, list[RecordResult]]:
        """
        Write the hits that Redis did not take into the slots.

        If Redis rejected a command, its hits are written. If the answer was lost, Redis may have
        taken its hits, so only a record of them is written. The tables decide which hits are
        repeats: they know the visitors who came since Redis went away.
        """
        in_doubt = [p for p, reply in failed.items() if type(reply) is AnswerLost]
        rejected = [p for p in failed if p not in in_doubt]
        results = iter(
            self._slots.write(
                [hit for partition in rejected for hit in groups[partition]],
                [hit for partition in in_doubt for hit in groups[partition]],
                partial(missed_records.make_records, command),
            )
        )
        return {p: [*islice(results, len(groups[p]))] for p in (*rejected, *in_doubt)}

    def read_numbers(self, wanted: Wanted) -> BufferNumbers:
        reading = PageRead(wanted, self._partitions)
        try:
            return reading.convert(self._totals, *self.redis.send_to_run(reading.build))
        except BufferUnavailable:
            return BufferNumbers()

    def keep_visitors(
        self,
        rows: Mapping[LastDays, Mapping[DailyVisitorsKey, DayInTable]],
        positions: Mapping[LastDays, FlushPosition],
    ) -> Mapping[LastDays, SpanCount]:
        try:
            return kept_visitors.keep(self.redis, rows, positions)
        except BufferUnavailable:
            return {}

    def read_state(self, keys: Collection[CounterKey]) -> BufferState:
        return self._totals.read_state(keys)

    def complete_totals(
        self, sums: Mapping[CounterKey, int], *, state: BufferState, keep: bool
    ) -> Mapping[CounterKey, int]:
        return self._totals.complete(sums, state=state, keep=keep)

    def read_days(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Sequence[HeldDays]:
        groups = group_by_partition(keys, self._partitions)
        return held_days.read_of_counters(self.redis, groups, first_day, last_day)

    def read_days_of_model(
        self,
        content_type_id: int | None,
        first_day: datetime.date,
        last_day: datetime.date,
        *,
        counter: str,
    ) -> Sequence[HeldDays]:
        of = content_type_id, counter
        return held_days.read_of_model(self.redis, *of, first_day, last_day)

    def discard_totals(self, keys: Collection[CounterKey]) -> None:
        self._totals.discard(keys)

    def discard_all_totals(self) -> None:
        self._totals.discard_all()

    def discard_objects(self, objects: Collection[ObjectKey]) -> None:
        deleted_objects.discard(self.redis, objects, self._partitions)

    def read_waiting(self) -> Waiting:
        return waiting.read(self.redis)

    def partitions(self) -> Iterable[int]:
        """Include those above PARTITIONS, which may have been larger. Costs a round trip."""
        self._breaker.try_now()
        runs = enumerate(held_days.read_runs(self.redis))
        return [p for p, found in runs if found or p < self._partitions]

    def claim(self, partition: int) -> Batch | None:
        self._breaker.try_now()  # Another partition may have failed.
        while found := claiming.claim(self.redis, partition):
            if batch := claiming.read(self.redis, found):
                return batch
        return None

    def settle(self, batch: Batch) -> bool:
        sent = self.redis.send_to_run(lambda run_id: [claiming.build_settle_call(batch, run_id)])
        if sent.run_id != batch.run_id:
            # Redis was restarted since the claim. Since then, it may have loaded totals without
            # hits that were in this batch, but not in the snapshot that Redis started from.
            self.discard_totals(batch.totals)
        return bool(sent.replies[0])

    def merge_sketches(
        self, known: Mapping[DailyVisitorsKey, bytes]
    ) -> Mapping[DailyVisitorsKey, Sketch]:
        groups = group_items(
            [visitors.key.partition(self._partitions) for visitors in known], known
        )
        merged = {
            key: sketch
            for p, keys in groups.items()
            for key, sketch in sketches.merge(
                self.redis, PartitionKeys(p), {key: known[key] for key in keys}
            ).items()
        }
        counters = [visitors.key for visitors in known]
        self.redis.send_to_run(partial(build_drops, counters, self._partitions))
        return merged

    def count_visitors(
        self, keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
    ) -> Mapping[DailyVisitorsKey, int]:
        groups = group_by_partition(keys, self._partitions)
        try:
            return sketches.count(self.redis, groups, first_day, last_day)
        except BufferUnavailable:
            return {}

    def count_unions(self, unions: Sequence[SketchUnion]) -> Sequence[int] | None:
        names = [PartitionKeys(union.key.partition(self._partitions)) for union in unions]
        try:
            return sketches.count_unions(self.redis, names, unions)
        except BufferUnavailable:
            return None

    def catch_up(self) -> int:
        return self._catch_up.deliver_all()

    def check(self) -> list[CheckMessage]:
        from django_hitcount.buffers.redis import checks

        return [*checks.check(self._transport)]
