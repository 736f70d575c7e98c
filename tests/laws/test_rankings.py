"""A law over any rows: a ranking is what a plain GROUP BY gives, however much of it is read."""

from __future__ import annotations

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_hitcount import rankings
from django_hitcount.counters.rankings import TREND_UNIT
from django_hitcount.db import rankings as db_rankings
from django_hitcount.maintenance.compaction import compact
from django_hitcount.rankings import popular, trending
from tests.app.models import Article, Page
from tests.ranked import NOON, add_daily, add_totals, day, grouped

TEXTS = ["10", "9", "B", "a", "c ", "é"]

OBJECTS = st.integers(0, 11)
SLOTS = st.integers(0, 3)
AGES = st.integers(0, 4)
# Few different numbers, so that many are equal; some are popular, and some take hits back.
HITS = st.integers(-3, 6) | st.integers(10, 10**10)

READING = st.fixed_dictionaries(
    {"FEWEST_ROWS": st.integers(1, 4), "MOST_ROWS": st.sampled_from([0, 4, 12_800])}
)
"""How many rows to read at first, and from how many on to sum up the table instead."""

law = settings(max_examples=60)


class TestRankings(TestCase):
    @classmethod
    def setUpTestData(cls):
        articles = Article.objects.bulk_create(Article(title=str(n % 2)) for n in range(6))
        cls.objs = [*articles, *Page.objects.bulk_create(Page(path=text) for text in TEXTS)]

    def setUp(self):
        self.enterContext(time_machine.travel(NOON, tick=False))
        self.patch = self.enterContext(pytest.MonkeyPatch.context())

    def read_as(self, reading, few):
        for name, value in reading.items():
            self.patch.setattr(db_rankings, name, value)
        self.patch.setattr(rankings, "FEW", few)

    def check(self, found, attribute, expected, limit, unit=1):
        numbered = [(obj, getattr(obj, attribute)) for obj in found]
        assert numbered == [(obj, hits / unit) for obj, hits in expected[:limit]]

    @law
    @given(
        st.dictionaries(st.tuples(OBJECTS, SLOTS), HITS, max_size=40),
        st.integers(1, 7),
        READING,
        st.sampled_from([0, 2, 2000]),
    )
    def test_of_all_time(self, rows, limit, reading, few):
        self.read_as(reading, few)
        rows = {(self.objs[n], slot): hits for (n, slot), hits in rows.items()}
        add_totals(rows)
        odd = Article.objects.filter(title="1").order_by("title")

        for _ in range(2):
            found = popular([Article, Page], limit)
            self.check(found, "hits", grouped(rows, self.objs), limit)
            self.check(odd.popular(limit), "hits", grouped(rows, odd), limit)
            compact()

    @law
    @given(
        st.dictionaries(st.tuples(OBJECTS, SLOTS, AGES), HITS, max_size=60),
        st.integers(1, 7),
        st.integers(1, 4),
        READING,
    )
    def test_of_days(self, rows, limit, days, reading):
        self.read_as(reading, few=0)
        rows = {(self.objs[n], *of): hits for (n, *of), hits in rows.items()}
        add_daily(rows)
        odd = Article.objects.filter(title="1")

        for _ in range(2):
            expected = grouped(rows, self.objs, lambda ago: ago < days)
            found = popular([Article, Page], limit, days=days)
            self.check(found, "hits", expected, limit)
            expected = grouped(rows, odd, lambda ago: 1 <= ago <= days)
            found = odd.popular(limit, first_day=day(days), last_day=day(1))
            self.check(found, "hits", expected, limit)
            compact()

    @law
    @given(
        st.dictionaries(st.tuples(OBJECTS, SLOTS, AGES), HITS, max_size=60),
        st.integers(1, 7),
        st.sampled_from([0.2, 0.3, 1, 2.5]),
        READING,
    )
    def test_of_trends(self, rows, limit, half_life, reading):
        self.read_as(reading, few=2)
        rows = {(self.objs[n], *of): hits for (n, *of), hits in rows.items()}
        add_daily(rows)

        def weigh(ago):
            return round(TREND_UNIT / 2 ** (ago / half_life)) if ago <= 10 * half_life else 0

        expected = grouped(rows, self.objs, weigh)
        found = trending([Article, Page], limit, half_life_days=half_life)
        self.check(found, "trend_score", expected, limit, TREND_UNIT)
