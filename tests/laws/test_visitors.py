"""A law over any order of visits, flushes and crashes: who counts, and how many there were."""

from __future__ import annotations

import datetime
from collections import Counter

import pytest
import time_machine
from django.test import RequestFactory
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits, get_visitors
from django_hitcount.recording import record_hits
from django_hitcount.status import get_refused_hits
from tests.app.models import Page
from tests.browsers import BROWSER
from tests.laws.machine import Machine, run, with_each_buffer

NOON = datetime.datetime(2026, 2, 27, 12, tzinfo=datetime.UTC)
DAYS = [NOON.date() - datetime.timedelta(days=1), NOON.date()]
"""Open days: of a closed one, only the number of visitors is kept."""

VISITORS = range(3)


class Visiting(Machine):
    @initialize()
    def empty(self) -> None:
        self.traveller = time_machine.travel(NOON, tick=False)
        self.traveller.start()
        self.lost: set[tuple] = set()
        self.begin(
            COUNTERS={
                "views": {"repeat": "daily", "visitors": True},
                "downloads": {"visitors": True},
            }
        )
        self.objs = Page.objects.bulk_create([Page(path="a:b"), Page(path="2026-02-27:v1:x")])
        self.hits: Counter[tuple] = Counter()
        self.seen: dict[tuple, set[int]] = {}
        self.refused: Counter[tuple] = Counter()

    def teardown(self) -> None:
        flush_hits()
        found = {
            (r.day, r.counter): r.hits
            for r in get_refused_hits(first_day=DAYS[0], last_day=DAYS[-1])
        }
        super().teardown()
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
            # The sketch is new; the next flush merges that of the table into it.
            flush_hits()
            self.lost -= visited

    @rule()
    def redis_loses_what_is_flushed(self) -> None:
        """Only the sketches: nothing but the filters knows which visitors have counted."""
        flush_hits()
        self.drop_keys("hitcount:*:visitors:*")
        self.lost |= self.seen.keys()

    @invariant()
    def totals_are_what_counted(self) -> None:
        for counter in ("views", "downloads"):
            totals = get_hits(self.objs, counter=counter)
            assert totals == {obj: self.hits[obj, counter] for obj in self.objs}

    @invariant()
    def visitors_are_those_seen(self) -> None:
        for counter in ("views", "downloads"):
            for day in DAYS:
                found = get_visitors(self.objs, first_day=day, last_day=day, counter=counter)
                for obj in self.objs:
                    assert found[obj] == len(self.seen.get((obj, counter, day), ()))


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@with_each_buffer(Visiting)
def test_visitors_count_once_a_day(valkey, machine):
    run(machine, max_examples=15, phases=[Phase.explicit, Phase.generate])
