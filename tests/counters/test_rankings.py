"""What the heads of lists prove."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.counters.rankings import (
    TREND_UNIT,
    Head,
    RankedKey,
    RowList,
    check_limit,
    prove,
    rank_keys,
    weigh_trend,
)
from django_hitcount.exceptions import InvalidArgument

TODAY = datetime.date(2026, 11, 22)


def keys(*hits):
    return [RankedKey((1, str(number)), value) for number, value in enumerate(hits)]


def head(last_hits, *, weight=1, rows_per_object=1, model=1):
    return Head(RowList(model, weight=weight), last_hits, rows_per_object)


def proven(candidates, *heads):
    ranking = prove(candidates, heads)
    return [key.hits for key in ranking.keys], ranking.is_complete


def test_the_ends_of_all_lists_add_up_to_the_bound():
    assert proven(keys(9, 8, 7), head(3), head(4)) == ([9, 8], False)


def test_as_many_hits_as_the_bound_are_not_certain():
    """An object in no head may have as many, and may come first."""
    assert proven(keys(7), head(7)) == ([], False)


def test_lists_that_were_read_to_their_ends_have_all_objects():
    assert proven(keys(9, 1)) == ([9, 1], True)
    assert proven(keys(9, 1), head(0)) == ([9, 1], False)


def test_an_object_may_have_several_rows_in_a_list():
    assert proven(keys(9, 6), head(2, rows_per_object=4)) == ([9], False)


def test_a_row_counts_with_its_weight():
    assert proven(keys(31, 30), head(3, weight=10)) == ([31], False)


def test_a_negative_end_does_not_lower_the_bound():
    """An object without a row in that list has more there."""
    assert proven(keys(5, 4), head(-3), head(4)) == ([5], False)


def test_a_list_of_one_model_does_not_bound_another():
    assert proven(keys(5, 4), head(3), head(4, model=2)) == ([5], False)


def test_no_hits_are_no_place():
    assert proven(keys(1, 0, -1)) == ([1], True)


def test_equal_hits_are_in_the_order_of_bytes():
    unordered = [RankedKey((1, text), 5) for text in ("b", "é", "10", "9", "B")]

    assert [key.object_key[1] for key in rank_keys(unordered)] == ["10", "9", "B", "b", "é"]


def test_weights_halve():
    weights = weigh_trend(TODAY, 3)

    ago = [weights[TODAY - datetime.timedelta(days=days)] for days in (0, 3, 6, 30)]
    assert ago == [TREND_UNIT, TREND_UNIT // 2, TREND_UNIT // 4, TREND_UNIT // 1024]
    assert len(weights) == 31
    assert sorted(weights) == [*weights]


def test_weights_of_a_short_half_life():
    assert [*weigh_trend(TODAY, 0.05).values()] == [TREND_UNIT]
    assert [*weigh_trend(TODAY, 0.5).values()][-2:] == [TREND_UNIT // 4, TREND_UNIT]


@pytest.mark.parametrize(
    "half_life", [0, -1, 367, True, "3", None, float("nan"), float("inf"), 10**9]
)
def test_a_half_life_that_makes_no_sense_is_refused(half_life):
    with pytest.raises(InvalidArgument, match=r"half-life.*number of days above 0 and up to 366"):
        weigh_trend(TODAY, half_life)


@pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1", None, 1_000_001, 10**30])
def test_a_limit_that_makes_no_sense_is_refused(limit):
    with pytest.raises(InvalidArgument) as error:
        check_limit(limit)

    expected = f"Invalid limit: {limit!r}. Pass a whole number from 1 to 1,000,000."
    assert str(error.value) == expected


@pytest.mark.parametrize("limit", [1, 1_000_000])
def test_a_limit_may_be_as_large_as_said(limit):
    assert check_limit(limit) == limit
