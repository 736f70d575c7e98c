"""The buffer in Redis. One script call takes a hit in and returns the total."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from django.core.checks import CheckMessage

from django_hitcount import conf, signals
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.buffers.redis import claiming, keeping, visitors
from django_hitcount.buffers.redis.catching_up import CatchUp
from django_hitcount.buffers.redis.keys import run_keys, throttle_key
from django_hitcount.buffers.redis.link import AnswerLost, BuiltCommand, Link
from django_hitcount.buffers.redis.reading import (
    Reading,
    add_held,
    read_days_of_model,
    read_for_page,
    read_runs,
    read_waiting,
)
from django_hitcount.buffers.redis.record_call import (
    build_record_call,
    pack_hit,
    read_one_result,
    read_reply,
)
from django_hitcount.buffers.redis.server import RedisServer, RunReplies
from django_hitcount.counters import group_by_partition, group_items, restore_order, split
from django_hitcount.counters.batches import Batch, Held, Known, RecordResult, Waiting
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import UNAVAILABLE, NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import MergedDays, Sketch, Visitors, VisitorsOfDays
from django_hitcount.db.savepoints import run_after_commit
from django_hitcount.db.sums import DayRange
from django_hitcount.db.tables import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import missed_records
from django_hitcount.outages.missed_records import HITS_AT_A_TIME, CommandId

logger = logging.getLogger("django_hitcount")


class RedisBuffer(Buffer):
    """
    Holds hits in Redis until a flush.

    Recording and reading cost one round trip. While Redis is away, hits are written to the slots at
    once. When Redis is back, it first gets what it missed. base.py describes the methods of Buffer.
    """

    def __init__(self, alias: str) -> None:
        config = conf.get_config()
        self._partitions = config.partitions
        self._threshold = config.flush_threshold or 0
        self.redis = RedisServer(alias, timeout_seconds=config.redis_timeout_seconds)
        self._breaker = self.redis.breaker
        self._catch_up = CatchUp(self.redis, self._partitions, self._threshold)
        self.redis.deliver_oldest = self._catch_up.deliver_oldest
        self._total_ttl_seconds = config.total_ttl_seconds
        self._slots = DatabaseBuffer()

    def record(
        self, hits: Sequence[NewHits], wanted: tuple[Number, ...] = ()
    ) -> tuple[list[RecordResult], Known]:
        """Costs a round trip per 500 hits, each with a timeout of its own."""
        if len(hits) > HITS_AT_A_TIME:
            return self._record_in_pieces(hits)
        groups: Mapping[int, Sequence[NewHits]] = {} if len(hits) == 1 else self._group(hits)
        # Kept numbers cannot follow a visitor of an earlier day.
        is_late = hits[0].visitor and hits[0].day != day_of()
        reading = read_for_page(wanted, self._partitions) if wanted else None
        command_id: CommandId | None = None

        def build(link: Link) -> Sequence[BuiltCommand]:
            nonlocal command_id
            command_id = link.number_command()
            calls: list[BuiltCommand] = []
            if not groups:
                calls.append(pack_hit(hits[0], command_id))
            for partition, some in groups.items():
                names = run_keys(partition, link.run_id)
                calls.append(build_record_call(names, some, command_id, self._threshold))
            if is_late:
                for partition, some in self._group(hits).items():
                    objects = [hit.key[:2] for hit in some]
                    calls.append(visitors.discard_kept(partition, objects, link.run_id))
            if reading:
                calls += reading.build(link)
            return calls

        sent = self.redis.try_to_send(build, commands=len(groups) or 1)
        numbers = reading.parse(*sent) if reading else Known()
        if not groups and (result := read_one_result(sent.replies[0], hits[0])):
            return [result], numbers  # As for most hits.
        results, known = self._read_results(groups or self._group(hits), sent, command_id)
        known.add(numbers)
        partitions = [hit.key.partition(self._partitions) for hit in hits]
        return restore_order(partitions, results), known

    def _record_in_pieces(self, hits: Sequence[NewHits]) -> tuple[list[RecordResult], Known]:
        """If a later piece fails, the hits from there on are lost: the others are counted."""
        results, known = list[RecordResult](), Known()
        for some in split(hits, HITS_AT_A_TIME):
            try:
                recorded, more = self.record(some)
            except (BufferUnavailable, *DATABASE_ERRORS) as exc:
                if not results:
                    raise
                left = hits[len(results) :]
                logger.error("%d of %d hits are not counted: %s", len(left), len(hits), exc)
                results += [RecordResult(None, hit.refusal or UNAVAILABLE) for hit in left]
                break
            results += recorded
            known.add(more)
        return results, known

    def _group(self, hits: Sequence[NewHits]) -> Mapping[int, Sequence[NewHits]]:
        partitions = [hit.key.partition(self._partitions) for hit in hits]
        return {partitions[0]: hits} if len(hits) == 1 else group_items(partitions, hits)

    def _read_results(
        self,
        groups: Mapping[int, Sequence[NewHits]],
        sent: RunReplies,
        command_id: CommandId | None,
    ) -> tuple[dict[int, list[RecordResult]], Known]:
        """
        Return the results of the hits by partition. Hits that Redis did not take go to the tables.

        Also returns what is known of the totals that Redis does not have.
        """
        results, failed, full, known = {}, {}, [], Known()
        # The replies to reads of the page may follow.
        for (partition, hits), reply in zip(groups.items(), sent.replies, strict=False):
            if isinstance(reply, BufferUnavailable):
                failed[partition] = reply
                continue
            results[partition], is_full, missing = read_reply(reply, hits)
            if is_full:
                full.append(partition)
            if missing:
                add_held(known, partition, sent.run_id, missing)
        if failed:
            try:
                results |= self._record_in_slots(groups, failed, command_id)
            finally:  # Also after an error: perhaps only the answer to a COMMIT was lost.
                self.redis.fall_behind()
        for partition in full:
            signals.partition_full.send_robust(type(self), partition=partition)
        return results, known

    def _record_in_slots(
        self,
        groups: Mapping[int, Sequence[NewHits]],
        failed: Mapping[int, BufferUnavailable],
        command_id: CommandId | None,
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
                partial(missed_records.make_records, command_id),
            )
        )
        return {p: [*islice(results, len(groups[p]))] for p in (*rejected, *in_doubt)}

    def read(self, numbers: Collection[Number], *, may_be_kept: bool = True) -> Known:
        if not numbers:
            return Known()
        reading = Reading(numbers, self._partitions, may_be_kept=may_be_kept)
        try:
            return reading.parse(*self.redis.send_to_run(reading.build))
        except BufferUnavailable:
            return Known()

    def keep_totals(self, totals: Mapping[Number, int], known: Known) -> None:
        keeping.keep_totals(self.redis, totals, known, ttl_seconds=self._total_ttl_seconds)

    def keep_visitors(
        self, numbers: Iterable[Number], days: VisitorsOfDays, known: Known
    ) -> Mapping[Number, Visitors]:
        try:
            return visitors.keep(self.redis, numbers, days, known)
        except BufferUnavailable:
            return {}

    def read_days_of_model(
        self, content_type_id: int | None, days: DayRange, *, counter: str
    ) -> Held:
        ends = days.first_day, days.last_day
        return read_days_of_model(self.redis, content_type_id, counter, *ends)

    def pause_totals(self, keys: Iterable[CounterKey]) -> None:
        different = [*dict.fromkeys(keys)]
        record_ids = missed_records.save_of_totals(different)
        keeping.pause(self.redis, different, self._partitions)
        resume = partial(self._resume_totals, different, record_ids)
        run_after_commit(resume, databases=[hits_alias()])

    def _resume_totals(self, keys: Sequence[CounterKey], record_ids: Sequence[int]) -> None:
        try:
            self.discard_totals(keys)
            missed_records.drop(record_ids)
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.warning("Totals that have changed are left to the next flush_hits: %s", exc)

    def discard_totals(self, keys: Collection[CounterKey]) -> None:
        self.redis.send_in_pieces(keys, partial(keeping.build_discard_calls, self._partitions))

    def discard_all_totals(self, partitions: Collection[int] | None = None) -> None:
        keeping.discard_all(self.redis, self._partitions, partitions)

    def discard_objects(
        self, objects: Collection[ObjectKey], *, only_flushed: bool = False
    ) -> None:
        # The sketches first: a page could keep numbers of what is still there.
        visitors.drop_sketches(self.redis, objects, self._partitions, only_flushed=only_flushed)
        self.discard_totals(
            [CounterKey(*of, name) for of in objects for name in conf.get_config().counters]
        )

    def read_waiting(self) -> Waiting:
        return read_waiting(self.redis)

    def partitions(self) -> Iterable[int]:
        """Include those above PARTITIONS, which may have been larger. Costs a round trip."""
        self._breaker.try_now()
        runs = enumerate(read_runs(self.redis))
        return [p for p, found in runs if found or p < self._partitions]

    def claim(self, partition: int) -> Batch | None:
        self._breaker.try_now()  # Another partition may have failed.
        while found := claiming.claim(self.redis, partition):
            if batch := claiming.read(self.redis, found):
                return batch
        return None

    def settle(self, batch: Batch) -> bool:
        sent = self.redis.send_to_run(lambda link: [claiming.build_settle_call(batch, link.run_id)])
        if sent.run_id != batch.run_id:
            # Redis was restarted since the claim. Since then, it may have loaded totals without
            # hits that were in this batch, but not in the snapshot that Redis started from.
            self.discard_totals(batch.totals)
        return bool(sent.replies[0])

    def merge_sketches(
        self, known: Mapping[DailyVisitorsKey, bytes]
    ) -> Mapping[DailyVisitorsKey, Sketch]:
        merged = visitors.merge_sketches(self.redis, known, self._partitions)

        def discard_kept(some: Sequence[CounterKey], run_id: str) -> list[BuiltCommand]:
            return [
                visitors.discard_kept(partition, [key[:2] for key in keys], run_id)
                for partition, keys in group_by_partition(some, self._partitions).items()
            ]

        self.redis.send_in_pieces([day.key for day in known], discard_kept)
        return merged

    def count_merged(self, merges: Sequence[MergedDays]) -> Sequence[int | None]:
        try:
            return visitors.count_merged(self.redis, merges, self._partitions)
        except BufferUnavailable:
            return [None] * len(merges)

    def admit(self, name: str, *, milliseconds: int) -> bool:
        command = ("SET", throttle_key(name), "1", "NX", "PX", milliseconds)
        return bool(self.redis.send([command])[0])

    def count_by_name(self, name: str, amount: int, *, milliseconds: int) -> int:
        key = throttle_key(name)
        begin, add = ("SET", key, "0", "NX", "PX", milliseconds), ("INCRBY", key, amount)
        return int(self.redis.send([begin, add])[1])

    def catch_up(self) -> int:
        return self._catch_up.deliver_all()

    def check(self, *, with_server: bool = False) -> list[CheckMessage]:
        from django_hitcount.buffers.redis import checks

        return [*(checks.check_server(self.redis) if with_server else checks.check_alias())]
