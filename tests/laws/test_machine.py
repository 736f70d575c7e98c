"""A law over any order of events: each total is what was recorded."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from django_hitcount.buffers import get_buffer
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from django_hitcount.series import hits_by_day
from tests.app.models import Article, Page
from tests.laws.machine import Machine, run, with_each_buffer
from tests.tables import daily_sums, slot_sums

FIRST_DAY = datetime.date(2026, 2, 27)
DAYS = [FIRST_DAY + datetime.timedelta(days=n) for n in range(4)]


class Counting(Machine):
    @initialize()
    def empty(self) -> None:
        self.begin()
        self.objs = [
            *Article.objects.bulk_create(Article(pk=n + 1, title=str(n)) for n in range(2))
        ]
        self.objs += Page.objects.bulk_create([Page(path="a:b"), Page(path="2026-02-27:x")])
        self.recorded = {(obj, day): 0 for obj in self.objs for day in DAYS}
        self.forgotten = set()
        """Objects that were created again, and still have the hits of those deleted before."""

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
    def totals_expire(self) -> None:
        self.drop_keys("hitcount:*:total:*")

    @rule(which=st.integers(0, 3))
    def object_is_deleted_and_created_again(self, which) -> None:
        obj = self.objs[which]
        pk = obj.pk
        obj.delete()
        obj.pk = pk
        obj.save(force_insert=True)
        self.forgotten.add(obj)
        if not get_buffer().keeps_hits:
            self.all_is_flushed()

    def all_is_flushed(self) -> None:
        """Until then, hits of deleted objects cannot be told from those of the next ones."""
        self.recorded |= {(obj, day): 0 for obj in self.forgotten for day in DAYS}
        self.forgotten.clear()

    def total_of(self):
        return {obj: sum(self.recorded[obj, day] for day in DAYS) for obj in self.objs}

    @invariant()
    def totals_are_what_was_recorded(self) -> None:
        assert get_hits(self.objs) == self.total_of()

    @invariant()
    def so_are_days_and_ranges(self) -> None:
        for obj in self.objs:
            for day in DAYS:
                assert get_hits(obj, first_day=day, last_day=day) == self.recorded[obj, day]
            assert get_hits(obj, first_day=DAYS[0], last_day=DAYS[-1]) == self.total_of()[obj]

    @invariant()
    def so_are_the_days_of_models_and_of_the_site(self) -> None:
        of_model = {
            model: {
                day: sum(self.recorded[obj, day] for obj in self.objs if isinstance(obj, model))
                for day in DAYS
            }
            for model in (Article, Page)
        }
        first, last = DAYS[0], DAYS[-1]
        assert hits_by_day(Article, first_day=first, last_day=last) == of_model[Article]
        assert (
            hits_by_day(Page.objects.exclude(path=""), first_day=first, last_day=last)
            == of_model[Page]
        )
        of_site = {day: of_model[Article][day] + of_model[Page][day] for day in DAYS}
        assert hits_by_day(None, first_day=first, last_day=last) == of_site

    @invariant()
    def both_tables_agree(self) -> None:
        assert slot_sums(self.objs) == daily_sums(self.objs)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@with_each_buffer(Counting)
def test_recorded_is_tables_and_buffer(valkey, machine):
    run(machine, max_examples=20)
