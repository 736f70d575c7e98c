"""A law over any order of events: recorded = tables + buffer, and every total says so."""

from __future__ import annotations

import datetime
from contextlib import suppress
from unittest import mock

import pytest
from django.conf import settings
from django.test import override_settings
from django_redis import get_redis_connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from django_hitcount import flushing, slots
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.compaction import compact
from django_hitcount.flushing import flush
from django_hitcount.recording import record_hits
from django_hitcount.tables import DailyHitSlot, FlushedBatch, HitSlot, MissedRecord
from django_hitcount.totals import get_totals, hits_between
from tests.app.models import Article, Page
from tests.conftest import DATABASE_BUFFER, REDIS_BUFFER
from tests.tables import daily_sums, slot_sums

FIRST_DAY = datetime.date(2026, 2, 27)
DAYS = [FIRST_DAY + datetime.timedelta(days=n) for n in range(4)]


class Crash(BaseException):
    """A process ends here: nothing that it would have done afterwards is done."""


CRASHES = {
    "before the batch is read": (RedisBuffer, "_scan"),
    "before the ledger": (FlushedBatch, "save"),
    "before the totals": (slots, "add_totals"),
    "before the days": (slots, "add_daily"),
    "before the settle": (RedisBuffer, "settle"),
}


class Counting(RuleBasedStateMachine):
    buffer = REDIS_BUFFER

    @initialize()
    def empty(self) -> None:
        self.override = override_settings(
            HITCOUNT={**settings.HITCOUNT, "BUFFER": self.buffer, "PARTITIONS": 2, "SLOTS": 3}
        )
        self.override.enable()
        get_redis_connection("hitcount").flushall()
        for table in (HitSlot, DailyHitSlot, FlushedBatch, MissedRecord, Article, Page):
            table.objects.all().delete()
        self.objs = [*Article.objects.bulk_create(Article(title=str(n)) for n in range(2))]
        self.objs += Page.objects.bulk_create([Page(path="a:b"), Page(path="2026-02-27:x")])
        self.recorded = {(obj, day): 0 for obj in self.objs for day in DAYS}

    def teardown(self) -> None:
        self.override.disable()

    @rule(
        chosen=st.lists(st.integers(0, 3), min_size=1, max_size=4),
        day=st.sampled_from(DAYS),
        amount=st.integers(-3, 1_000_000_000).filter(bool),
    )
    def record(self, chosen, day, amount) -> None:
        before = self.total_of()
        objs = [self.objs[n] for n in chosen]
        hits = record_hits(objs, amount=amount, at=day)
        for obj in objs:
            self.recorded[obj, day] += amount
        after = self.total_of()
        assert [hit.total for hit in hits] == [after[obj] for obj in objs]
        assert all(before[obj] == after[obj] for obj in {*self.objs} - {*objs})

    @rule()
    def flush(self) -> None:
        flush()

    @rule(step=st.sampled_from(sorted(CRASHES)), partition=st.integers(0, 1))
    def crash_while_flushing(self, step, partition) -> None:
        if get_buffer().keeps_hits:
            with mock.patch.object(*CRASHES[step], side_effect=Crash), suppress(Crash):
                flushing.flush_partition(get_buffer(), partition)

    @rule()
    def compact(self) -> None:
        compact()

    @rule()
    def totals_expire(self) -> None:
        redis = get_redis_connection("hitcount")
        for key in redis.scan_iter("hitcount:*:total:*"):
            redis.delete(key)

    @rule()
    def ledger_is_pruned(self) -> None:
        flushing.prune_ledger()

    @rule(which=st.integers(0, 3))
    def object_is_deleted_and_made_anew(self, which) -> None:
        obj = self.objs[which]
        pk = obj.pk
        obj.delete()
        obj.pk = pk
        obj.save(force_insert=True)
        for day in DAYS:
            self.recorded[obj, day] = 0

    def total_of(self):
        return {obj: sum(self.recorded[obj, day] for day in DAYS) for obj in self.objs}

    @invariant()
    def totals_are_what_was_recorded(self) -> None:
        assert get_totals(self.objs) == self.total_of()

    @invariant()
    def so_are_days_and_ranges(self) -> None:
        for obj in self.objs:
            for day in DAYS:
                assert hits_between(obj, day, day) == self.recorded[obj, day]
            assert hits_between(obj, DAYS[0], DAYS[-1]) == self.total_of()[obj]

    @invariant()
    def both_tables_agree(self) -> None:
        assert slot_sums(self.objs) == daily_sums(self.objs)


class CountingWithoutRedis(Counting):
    buffer = DATABASE_BUFFER


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("machine", [Counting, CountingWithoutRedis])
def test_recorded_is_tables_and_buffer(valkey, machine):
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
