"""Objects of several models by their hits and by their change, which reports show."""

from __future__ import annotations

import datetime
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_hitcount.counters.rankings import Order, RankedKey, Scope, weigh_days
from django_hitcount.db import rankings
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.rankings import compare_objects, stream_objects
from django_hitcount.db.slots import CORRECTION_SLOT
from django_hitcount.db.tables import DailyHitSlot
from tests.app.models import Article, Photo, Plain

TODAY = datetime.date(2026, 11, 22)
MODELS = (Article, Photo, Plain)


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


def day(ago):
    return TODAY - datetime.timedelta(days=ago)


def days_ago(first, last):
    return [day(ago) for ago in range(first, last - 1, -1)]


def scope(days, gap=0, models=None):
    """As many days before, and perhaps some days in between."""
    return Scope(
        content_type_ids=ids() if models is None else models,
        counter="views",
        weights=weigh_days(days_ago(days, 1)),
        before=days_ago(2 * days + gap, days + gap + 1),
    )


def first(found, limit):
    """The first objects of each ranking."""
    return [found[order].first(limit) for order in Order]


def is_certain(found, limit):
    return all(ranking.proves(limit) for ranking in found.values())


def group(rows, days, gap=0):
    """As a plain GROUP BY would rank them."""
    models, hits, before = ids(), Counter(), Counter()
    for (model, pk, ago, _), amount in rows.items():
        key = models[model], str(pk)
        hits[key] += amount if 1 <= ago <= days else 0
        before[key] += amount if days + gap < ago <= 2 * days + gap else 0
    keys = [RankedKey(key, hits[key], before[key]) for key in hits]
    return [
        sorted(
            (key for key in keys if key.score(order) > 0),
            key=lambda key: (-key.score(order), key.object_key),
        )
        for order in Order
    ]


@st.composite
def rows_of_days(draw):
    """Rows whose hits of a day are not negative, though those of a slot may be."""
    keys = st.tuples(st.integers(0, 2), st.integers(1, 12), st.integers(0, 8))
    rows = {}
    for key, amounts in draw(
        st.dictionaries(keys, st.lists(st.integers(0, 20)), max_size=40)
    ).items():
        taken = draw(st.integers(0, min(5, sum(amounts[:2]))))
        for slot, amount in enumerate(amounts[:2]):
            rows[*key, slot] = amount
        if taken:
            rows[*key, CORRECTION_SLOT] = -taken
    return rows


class TestRankings(TestCase):
    @given(rows_of_days(), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2))
    def test_objects_are_ranked_as_by_group_by(self, rows, limit, days, gap):
        for head_rows in (1, 5, 100):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rankings, "ROWS_OF_REPORTS", head_rows)
                DailyHitSlot.objects.all().delete()
                add_rows(rows)
                found = compare_objects(scope(days, gap), limit)
                due = [keys[:limit] for keys in group(rows, days, gap)]
                assert first(found, limit)[0] == due[0]
                assert is_certain(found, limit) or head_rows < 100
                for order, keys in zip(Order, due, strict=True):
                    if found[order].proves(limit):
                        assert found[order].first(limit) == keys

    @given(rows_of_days(), st.integers(1, 4), st.integers(0, 2))
    def test_all_objects_are_streamed_in_their_order(self, rows, days, gap):
        DailyHitSlot.objects.all().delete()
        add_rows(rows)

        found = [[*stream_objects(scope(days, gap), order)] for order in Order]
        assert found == group(rows, days, gap)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rankings, "MOST_ROWS", 1)
            tables = compare_objects(scope(days, gap), 3)
        assert first(tables, 3) == [keys[:3] for keys in found]


@pytest.mark.django_db(transaction=True)  # Without savepoints, which are queries, too.
@pytest.mark.parametrize("days", [1, 30, 90, 365, 1200])
def test_several_models_cost_one_query(days, django_assert_num_queries):
    rows = {
        (model, pk, ago, 0): 1000 - pk * ago
        for model in range(3)
        for pk in range(1, 40)
        for ago in (1, days + 1)
    }
    add_rows(rows)
    ids()

    with django_assert_num_queries(1):
        found = compare_objects(scope(days), 10)

    assert first(found, 10) == [keys[:10] for keys in group(rows, days)]
    assert is_certain(found, 10)


@pytest.mark.django_db(transaction=True)
def test_nearly_equal_hits_cost_another_query(django_assert_num_queries):
    rows = {(0, pk, ago, 0): 1 for pk in range(1, 300) for ago in (1, 2)}
    add_rows(rows)
    ids()

    with django_assert_num_queries(2):
        found = compare_objects(scope(2), 10)

    assert first(found, 10)[0] == group(rows, 2)[0][:10]
    assert not is_certain(found, 10)


@pytest.mark.django_db(transaction=True)
def test_changes_that_are_not_certain_cost_no_other_query(django_assert_num_queries):
    """Each object has as many hits as before, but one that rises and one that falls."""
    rows = {(0, pk, ago, 0): 10_000 // pk for pk in range(1, 300) for ago in (1, 2)}
    rows |= {(0, 5, 1, 0): 2100, (0, 6, 1, 0): 1600}
    add_rows(rows)
    ids()

    with django_assert_num_queries(1):
        found = compare_objects(scope(1), 10)

    _, rising, falling = group(rows, 1)
    assert first(found, 10)[1:] == [rising, falling]
    assert not is_certain(found, 10)  # The 200 objects that were not read might change by 100.


@pytest.mark.django_db
def test_no_models_have_no_ranking(django_assert_num_queries):
    nothing = scope(1, models=[])

    with django_assert_num_queries(0):
        found = compare_objects(nothing, 1)
        assert first(found, 1) == [[], [], []]
        assert is_certain(found, 1)
        assert [*stream_objects(nothing, Order.TOP)] == []


@pytest.mark.django_db
def test_without_a_period_before_there_is_no_change():
    add_rows({(0, 1, 0, 0): 3, (0, 1, 1, 0): 4})
    only_today = Scope(content_type_ids=ids(), counter="views", weights=weigh_days([TODAY]))
    key = RankedKey((ids()[0], "1"), 3, 0)

    assert first(compare_objects(only_today, 10), 10) == [[key], [], []]
    assert [*stream_objects(only_today, Order.TOP)] == [key]
