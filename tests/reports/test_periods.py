from __future__ import annotations

import datetime

import pytest
import time_machine

from django_hitcount.exceptions import InvalidDay
from django_hitcount.reports.periods import DAYS_BY_NAME, named_period, read_period


def day(text):
    return datetime.date.fromisoformat(text)


@pytest.fixture(autouse=True)
def late_on_a_sunday():
    # In Berlin, it is Monday already.
    with time_machine.travel("2026-11-22T23:30:00+00:00", tick=False):
        yield


@pytest.mark.parametrize("name", DAYS_BY_NAME)
def test_a_named_period_ends_today(name):
    period = named_period(name)

    assert period.last_day == day("2026-11-23")
    assert period.days == DAYS_BY_NAME[name]


def test_the_period_before_is_as_long_and_ends_the_day_before():
    before = named_period("7").before

    assert (before.first_day, before.last_day) == (day("2026-11-10"), day("2026-11-16"))


@pytest.mark.parametrize(
    "parameters",
    [
        {"period": "today"},
        {"period": "365"},
        {"first": "2026-01-01", "last": "2026-01-31"},
        {"first": "2024-02-29", "last": "2024-02-29"},
    ],
)
def test_the_parameters_of_a_period_are_those_it_was_read_from(parameters):
    assert read_period(parameters).parameters == parameters


def test_thirty_days_are_the_default():
    assert read_period({}) == read_period({"period": ""}) == named_period("30")


def test_without_a_last_day_a_period_ends_today():
    assert read_period({"first": "2026-11-20", "last": ""}).days == 4


def test_days_win_over_a_name():
    assert read_period({"first": "2026-11-20", "last": "2026-11-21", "period": "7"}).days == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"period": "8"}, "Invalid period: “8”. Use one of today, 7, 30, 90, 365."),
        ({"first": "2026-02-30"}, "Invalid day: “2026-02-30”."),
        ({"first": "yesterday"}, "Invalid day: “yesterday”."),
        ({"last": "2026-11-20"}, "Give the first day (From), too."),
        ({"first": "2026-11-24"}, "The first day, Nov. 24, 2026, is in the future."),
        ({"first": "9999-12-30", "last": "9999-12-31"}, "The first day, Dec. 30, 9999, is in"),
        ({"first": "2026-11-20", "last": "?"}, "Invalid day: “?”."),
        ({"first": "2026-11-20", "last": "2026-11-19"}, "Nov. 20, 2026, is later than the last"),
        (
            {"first": "2020-01-01", "last": "2026-11-19"},
            "From Jan. 1, 2020 to Nov. 19, 2026 is too long. Choose at most 1,830 days.",
        ),
        ({"first": "0001-01-01", "last": "0001-01-02"}, "Give a later day"),
    ],
)
def test_invalid_parameters_are_named(parameters, message):
    with pytest.raises(InvalidDay) as raised:
        read_period(parameters)

    assert message in str(raised.value)
