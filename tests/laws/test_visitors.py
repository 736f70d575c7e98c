"""A law over any order of visits, flushes and crashes: who counts, and how many there were."""

from __future__ import annotations

import datetime
from collections import Counter
from contextlib import suppress
from unittest import mock

import pytest
import time_machine
from django.conf import settings
from django.test import RequestFactory, override_settings
from django_redis import get_redis_connection
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from django_hitcount import daily_visitors, flushing, slots
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.compaction import compact
from django_hitcount.flushing import flush
from django_hitcount.recording import record_hits
from django_hitcount.refused_hits import refused_between
from django_hitcount.tables import (
    DailyHitSlot,
    DailyVisitors,
    FlushedBatch,
    HitSlot,
    RefusedHitSlot,
    SeenVisitor,
)
from django_hitcount.totals import get_totals
from django_hitcount.unique_visitors import get_visitors
from tests.app.models import Page
from tests.browsers import BROWSER
from tests.conftest import DATABASE_BUFFER, REDIS_BUFFER

NOON = datetime.datetime(2026, 2, 27, 12, tzinfo=datetime.UTC)
DAYS = [NOON.date() - datetime.timedelta(days=1), NOON.date()]
"""The days that are open: a closed one is a number, which knows nobody."""

VISITORS = range(3)
"""So few that two of them share a register of a sketch once in 5,000 sketches."""


class Crash(BaseException):
    """A process ends here: nothing that it would have done afterwards is done."""


CRASHES = {
    "before the batch is read": (RedisBuffer, "_scan"),
    "before the refused hits": (slots, "add_refused"),
    "before the visitors": (daily_visitors, "put"),
    "before the settle": (RedisBuffer, "settle"),
}


class Visiting(RuleBasedStateMachine):
    buffer = REDIS_BUFFER

    @initialize()
    def empty(self) -> None:
        self.traveller = time_machine.travel(NOON, tick=False)
        self.traveller.start()
        self.lost: set[tuple] = set()
        options = {"views": {"repeat": "daily", "visitors": True}, "downloads": {"visitors": True}}
        self.override = override_settings(
            HITCOUNT={
                **settings.HITCOUNT,
                "BUFFER": self.buffer,
                "PARTITIONS": 2,
                "SLOTS": 3,
                "COUNTERS": options,
            }
        )
        self.override.enable()
        get_redis_connection("hitcount").flushall()
        tables = (HitSlot, DailyHitSlot, RefusedHitSlot, DailyVisitors, SeenVisitor, FlushedBatch)
        for table in (*tables, Page):
            table.objects.all().delete()
        self.objs = Page.objects.bulk_create([Page(path="a:b"), Page(path="2026-02-27:v1:x")])
        self.hits: Counter[tuple] = Counter()
        self.seen: dict[tuple, set[int]] = {}
        self.refused: Counter[tuple] = Counter()

    def teardown(self) -> None:
        flush()
        found = {(r.day, r.counter): r.hits for r in refused_between(DAYS[0], DAYS[-1])}
        self.override.disable()
        self.traveller.stop()
        assert found == self.refused

    @rule(
        chosen=st.lists(st.integers(0, 1), min_size=1, max_size=3),
        visitor=st.sampled_from(VISITORS),
        day=st.sampled_from(DAYS),
        counter=st.sampled_from(["views", "downloads"]),
    )
    def visit(self, chosen, visitor, day, counter) -> None:
        request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{visitor}")
        objs = [self.objs[n] for n in chosen]
        for obj, hit in zip(objs, record_hits(objs, request, counter=counter, at=day), strict=True):
            seen = self.seen.setdefault((obj, counter, day), set())
            is_repeat = counter == "views" and visitor in seen
            seen.add(visitor)
            assert hit.refusal == ("repeat" if is_repeat else None)
            if is_repeat:
                self.refused[day, counter] += 1
            else:
                self.hits[obj, counter] += 1
        visited = {(obj, counter, day) for obj in objs}
        if visited & self.lost:
            # Begun anew, to which the next flush adds what the table knows.
            flush()
            self.lost -= visited

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
    def redis_loses_what_is_flushed(self) -> None:
        """The sketches alone: the filters are all that knows who has been counted."""
        flush()
        redis = get_redis_connection("hitcount")
        for key in redis.scan_iter("hitcount:*:visitors:*"):
            redis.delete(key)
        self.lost |= self.seen.keys()

    @invariant()
    def totals_are_what_counted(self) -> None:
        for counter in ("views", "downloads"):
            totals = get_totals(self.objs, counter)
            assert totals == {obj: self.hits[obj, counter] for obj in self.objs}

    @invariant()
    def visitors_are_those_seen(self) -> None:
        for counter in ("views", "downloads"):
            for day in DAYS:
                found = get_visitors(self.objs, day, day, counter=counter)
                for obj in self.objs:
                    assert found[obj] == len(self.seen.get((obj, counter, day), ()))


class VisitingWithoutRedis(Visiting):
    buffer = DATABASE_BUFFER


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("machine", [Visiting, VisitingWithoutRedis])
def test_visitors_count_once_a_day(valkey, machine):
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(
            max_examples=15,
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )
