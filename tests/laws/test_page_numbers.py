"""A page shows the visitors that were, whatever Redis loses and whenever a flush comes."""

from __future__ import annotations

import datetime

import pytest
import time_machine
from django.template import Context, Template
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from django_hitcount import page_numbers
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from tests.app.models import Page
from tests.laws.machine import Machine, run
from tests.visiting import request_of

NOON = datetime.datetime(2026, 2, 27, 12, tzinfo=datetime.UTC)
VISITORS = range(3)

RANGES = (1, 2, 3, 5)
SOURCE = "{% load hitcount %}" + " ".join(f"{{% visitors o days={n} %}}" for n in RANGES)


class Reading(Machine):
    rotation = "day"

    @initialize()
    def empty(self) -> None:
        self.traveller = time_machine.travel(NOON, tick=False)
        self.clock = self.traveller.start()
        self.begin(
            COUNTERS={"views": {"visitors": True}},
            VISITOR_KEY_ROTATION=self.rotation,
        )
        page_numbers._wishes_of.cache_clear()
        self.objs = Page.objects.bulk_create([Page(path="a:b"), Page(path="2026-02-27:v1:x")])
        self.seen: set[tuple[Page, datetime.date, int]] = set()
        self.today = NOON.date()

    def teardown(self) -> None:
        super().teardown()
        self.traveller.stop()

    @rule(
        chosen=st.lists(st.integers(0, 1), min_size=1, max_size=2, unique=True),
        visitor=st.sampled_from(VISITORS),
        ago=st.integers(0, 4),
    )
    def visit(self, chosen, visitor, ago) -> None:
        day = self.today - datetime.timedelta(days=ago)
        objs = [self.objs[n] for n in chosen]
        record_hits(objs, request_of(visitor), at=day)
        self.seen |= {(obj, day, visitor) for obj in objs}
        if ago > 1:
            # If Redis had lost the sketch of a closed day, the next flush merges that of the table.
            Template(SOURCE).render(Context({"o": objs[0]}))
            flush_hits()

    @rule(chosen=st.integers(0, 1), visitor=st.sampled_from(VISITORS))
    def show(self, chosen, visitor) -> None:
        """The page of an object counts its own hit, and then shows its visitors."""
        obj = self.objs[chosen]
        request = request_of(visitor)
        self.seen.add((obj, self.today, visitor))
        template = Template(SOURCE.replace("%}", "%}{% hit_count o as n %}", 1))
        shown = template.render(Context({"o": obj, "request": request}))
        assert shown.split() == self.expected(obj)

    @rule(lost=st.sampled_from(["visitors", "*:kept_visitors", "*"]))
    def redis_loses_what_is_flushed(self, lost) -> None:
        flush_hits()
        self.drop_keys(f"hitcount:*:{lost}:*")

    @rule()
    def flush_and_compact(self) -> None:
        flush_hits()
        compact()

    @rule()
    def midnight(self) -> None:
        """A flush runs at least once a day."""
        flush_hits()
        self.clock.shift(datetime.timedelta(days=1))
        self.today += datetime.timedelta(days=1)

    @invariant()
    def tags_show_those_seen(self) -> None:
        for obj in self.objs:
            assert Template(SOURCE).render(Context({"o": obj})).split() == self.expected(obj)

    def expected(self, obj: Page) -> list[str]:
        return [str(self.count(obj, days)) for days in RANGES]

    def count(self, obj: Page, days: int) -> int:
        first = self.today - datetime.timedelta(days=days - 1)
        found = {(day, v) for seen, day, v in self.seen if seen == obj and first <= day}
        if self.rotation == "day":
            return len(found)
        return len({v for day, v in found})


class ReadingOneSpan(Reading):
    rotation = "never"


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("machine", [Reading, ReadingOneSpan])
def test_page_shows_the_visitors_who_came(valkey, machine):
    run(machine, max_examples=15, phases=[Phase.explicit, Phase.generate])
