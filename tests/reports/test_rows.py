from __future__ import annotations

import datetime

import pytest

from django_hitcount.reports.rows import ObjectRow, pick_days, share_of, sum_up
from django_hitcount.reports.selection import Period

FIRST = datetime.date(2026, 11, 20)
TODAY = datetime.date(2040, 1, 1)


def days(*hits, first=FIRST):
    return {first + datetime.timedelta(days=number): value for number, value in enumerate(hits)}


def summed(hits, before):
    first_before = FIRST - datetime.timedelta(days=len(before))
    return sum_up(days(*hits), days(*before, first=first_before))


def test_totals_are_those_of_all_days():
    found = summed([1, 5, 4], [2, 2, 1])

    assert (found["total"], found["total_before"]) == (10, 5)
    assert found["best"] == (FIRST + datetime.timedelta(days=1), 5)
    assert found["change"] == 100


@pytest.mark.parametrize(
    ("hits", "before", "change"),
    [([3], [4], -25), ([0], [4], -100), ([3], [0], None), ([0], [0], None), ([3], [-1], None)],
)
def test_change_needs_hits_to_compare_with(hits, before, change):
    assert summed(hits, before)["change"] == change


@pytest.mark.parametrize(
    ("hits", "per_day"),
    [
        ([100, 51], 76),
        ([1, 0], 0.5),
        ([2, 2], 2),
        ([0, 0], 0),
        ([1, *[0] * 29], 0.033),
        ([1, *[0] * 1829], 0.00055),
        ([13, 6], 9.5),
        ([249, *[0] * 24], 10),
        ([2041, 0], 1020),
        ([-1, 0, 0], -0.33),
    ],
)
def test_hits_per_day_are_rounded(hits, per_day):
    assert repr(summed(hits, hits)["per_day"]) == repr(per_day)


def test_the_newest_of_the_best_days_is_the_best():
    assert summed([5, 5], [0, 0])["best"][0] == FIRST + datetime.timedelta(days=1)


def test_a_report_is_empty_without_any_hits():
    assert summed([0, 0], [0, 0])["is_empty"]
    assert not summed([0, 1], [0, 0])["is_empty"]
    assert not summed([0, 0], [0, -1])["is_empty"]


def test_a_period_before_without_hits_is_not_drawn():
    assert not summed([1, 2], [0, 0])["chart"].has_before
    assert summed([1, 2], [0, 1])["chart"].has_before


@pytest.mark.parametrize(
    ("part", "whole", "share"), [(1, 4, 25), (0, 4, 0), (0, 0, None), (-1, 4, None), (5, 4, None)]
)
def test_share_of(part, whole, share):
    assert share_of(part, whole) == share


def test_days_of_a_period_are_picked():
    period = Period(first_day=FIRST, last_day=FIRST, today=TODAY)

    assert pick_days(days(1, 2, 3), period) == {FIRST: 1}
    assert pick_days(days(1, 2, 3), None) == {}


def test_today_has_no_change():
    found = summed([3], [])

    assert (found["total"], found["total_before"], found["change"]) == (3, None, None)
    assert not summed([3], [])["has_before"]


@pytest.mark.parametrize(
    ("hits", "before", "more", "change"),
    [(6, 8, -2, -25), (6, 0, 6, None), (0, 8, -8, -100), (6, -2, 8, None), (6, None, None, None)],
)
def test_change_of_an_object(hits, before, more, change):
    row = ObjectRow(key=(1, "1"), name="", obj=None, model_name="", hits=hits, before=before)

    assert (row.more, row.change) == (more, change)
