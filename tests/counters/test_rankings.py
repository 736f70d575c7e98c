"""What the heads of lists prove."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.counters.rankings import (
    TREND_UNIT,
    Head,
    RankedKey,
    check_limit,
    prove,
    rank_keys,
    weigh_trend,
)
from django_hitcount.exceptions import InvalidArgument

TODAY = datetime.date(2026, 11, 22)


def keys(*hits):
    return [RankedKey((1, str(number)), value) for number, value in enumerate(hits)]


def proven(candidates, *heads, depth=2):
    ranking = prove(candidates, heads, depth=depth)
    return [key.hits for key in ranking.keys], ranking.is_complete


def test_the_ends_of_all_lists_add_up_to_the_bound():
    assert proven(keys(9, 8, 7), Head(2, 3, 1, 1), Head(2, 4, 1, 1)) == ([9, 8], False)


def test_as_many_hits_as_the_bound_are_not_certain():
    """An object in no head may have as many, and may come first."""
    assert proven(keys(7), Head(2, 7, 1, 1)) == ([], False)


def test_a_list_that_was_read_to_its_end_bounds_at_0():
    assert proven(keys(9, 1), Head(1, 5, 1, 1)) == ([9, 1], True)
    assert proven(keys(9, 3), Head(1, 5, 1, 1), Head(2, 3, 1, 1)) == ([9], False)


def test_an_object_may_have_several_rows_in_a_list():
    assert proven(keys(9, 6), Head(2, 2, 1, 4)) == ([9], False)


def test_a_row_counts_with_its_weight():
    assert proven(keys(31, 30), Head(2, 3, 10, 1)) == ([31], False)


def test_a_negative_end_does_not_lower_the_bound():
    """An object without a row in that list has more there."""
    assert proven(keys(5, 4), Head(2, -3, 1, 1), Head(2, 4, 1, 1)) == ([5], False)


def test_a_list_of_one_model_does_not_bound_another():
    heads = Head(2, 3, 1, 1, 1), Head(2, 4, 1, 1, 2)

    assert proven(keys(5, 4), *heads) == ([5], False)


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
