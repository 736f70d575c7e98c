"""Rankings of several models at once, which reports show."""

from __future__ import annotations

import datetime
from collections import Counter
from fractions import Fraction

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_hitcount.counters.rankings import TREND_UNIT
from django_hitcount.db import model_rankings
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.model_rankings import rank_objects
from django_hitcount.db.tables import DailyHitSlot
from tests.app.models import Article, Photo, Plain

TODAY = datetime.date(2026, 11, 22)
MODELS = (Article, Photo, Plain)


@pytest.fixture(autouse=True)
def on_a_sunday():
    with time_machine.travel("2026-11-22T12:00:00+00:00", tick=False):
        yield


def ids():
    return [content_type_id_of(model) for model in MODELS]


def add_rows(rows):
    """Add rows of (number of a model, object id, days ago, slot, hits)."""
    models = ids()
    DailyHitSlot.objects.bulk_create(
        DailyHitSlot(
            content_type_id=models[model],
            object_id=str(pk),
            counter="views",
            day=TODAY - datetime.timedelta(days=ago),
            slot=slot,
            hits=hits,
        )
        for (model, pk, ago, slot), hits in rows.items()
    )


def group(rows, days, weigh=lambda ago: 1):
    """As a plain GROUP BY would rank them."""
    models, sums = ids(), Counter()
    for (model, pk, ago, _), hits in rows.items():
        if ago < days:
            sums[models[model], str(pk)] += hits * weigh(ago)
    return sorted(
        ((key, hits) for key, hits in sums.items() if hits > 0), key=lambda row: (-row[1], row[0])
    )


def trend_weight(ago):
    return round(TREND_UNIT * 2 ** (-ago / 3))


def rank(limit, days, models=None):
    return rank_objects(
        ids() if models is None else models,
        limit,
        counter="views",
        first_day=TODAY - datetime.timedelta(days=days - 1),
        last_day=TODAY,
        half_life_days=3,
    )


class TestRankings(TestCase):
    @given(
        st.dictionaries(
            st.tuples(st.integers(0, 2), st.integers(1, 12), st.integers(0, 3), st.integers(0, 2)),
            st.integers(-5, 20),
            max_size=60,
        ),
        st.integers(1, 6),
        st.integers(1, 5),
    )
    def test_several_models_are_ranked_as_by_group_by(self, rows, limit, days):
        for depth in (1, 5):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(model_rankings, "FEWEST_ROWS", depth)
                DailyHitSlot.objects.all().delete()
                add_rows(rows)
                found = rank(limit, days)
                assert found.top == group(rows, days)[:limit]
                assert found.trending == group(rows, 31, trend_weight)[:limit]


@pytest.mark.django_db(transaction=True)  # Without savepoints, which are queries, too.
@pytest.mark.parametrize("days", [1, 30, 162, 245, 246, 400])
def test_several_models_cost_one_query(days, django_assert_num_queries):
    rows = {(model, pk, 0, 0): 1000 - pk for model in range(3) for pk in range(1, 40)}
    add_rows(rows)
    ids()

    with django_assert_num_queries(1):
        found = rank(10, days)

    assert found.top == group(rows, days)[:10]
    assert found.trending == group(rows, 31, trend_weight)[:10]


@pytest.mark.django_db(transaction=True)
def test_nearly_equal_hits_cost_another_query(django_assert_num_queries):
    rows = {(0, pk, ago, 0): 1 for pk in range(1, 300) for ago in range(2)}
    add_rows(rows)
    ids()

    with django_assert_num_queries(2):
        found = rank(10, 2)

    assert found.top == group(rows, 2)[:10]
    assert found.trending == group(rows, 31, trend_weight)[:10]


@pytest.mark.django_db
def test_no_models_have_no_ranking(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert rank(10, 1, models=[]) == ([], [])


@pytest.mark.django_db
def test_trends_of_several_models_are_ranked_together():
    add_rows({(0, 1, 3, 0): 8, (1, 2, 0, 0): 5, (2, 3, 31, 0): 10**6})
    article, photo, _ = ids()

    keys = rank(10, 1).trending

    assert [(key.object_key, Fraction(key.hits, TREND_UNIT)) for key in keys] == [
        ((photo, "2"), 5),
        ((article, "1"), 4),
    ]
