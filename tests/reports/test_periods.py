from __future__ import annotations

import datetime

import pytest
import time_machine
from django.utils.translation import override

from django_hitcount.exceptions import InvalidArgument
from django_hitcount.reports.selection import PERIODS, named_period, read_period


def day(text):
    return datetime.date.fromisoformat(text)


@pytest.fixture(autouse=True)
def late_on_a_sunday():
    # In Berlin, it is Monday already.
    with time_machine.travel("2026-11-22T23:30:00+00:00", tick=False):
        yield


def span(period):
    return str(period.first_day), str(period.last_day)


@pytest.mark.parametrize(
    ("name", "days", "before"),
    [
        ("yesterday", ("2026-11-22", "2026-11-22"), ("2026-11-21", "2026-11-21")),
        ("7", ("2026-11-16", "2026-11-22"), ("2026-11-09", "2026-11-15")),
        ("30", ("2026-10-24", "2026-11-22"), ("2026-09-24", "2026-10-23")),
        ("90", ("2026-08-25", "2026-11-22"), ("2026-05-27", "2026-08-24")),
        ("365", ("2025-11-23", "2026-11-22"), ("2024-11-23", "2025-11-22")),
        ("last-week", ("2026-11-16", "2026-11-22"), ("2026-11-09", "2026-11-15")),
        ("last-month", ("2026-10-01", "2026-10-31"), ("2026-08-31", "2026-09-30")),
        ("this-year", ("2026-01-01", "2026-11-22"), ("2025-01-01", "2025-11-22")),
    ],
)
def test_named_periods_are_over_and_compared_with_as_many_days(name, days, before):
    period = named_period(name)

    assert span(period) == days
    assert span(period.before) == before
    assert period.before.days == period.days
    assert not period.is_today


def test_today_is_compared_with_nothing():
    today = named_period("today")

    assert span(today) == ("2026-11-23", "2026-11-23")
    assert today.is_today
    assert today.before is None


@pytest.mark.parametrize(
    ("parameters", "days"),
    [
        ({"period": "today"}, ("2026-11-23", "2026-11-23")),
        ({"period": "yesterday"}, ("2026-11-22", "2026-11-22")),
        ({"period": "7"}, ("2026-11-17", "2026-11-23")),
        ({"period": "last-week"}, ("2026-11-16", "2026-11-22")),
        ({"period": "this-year"}, ("2026-01-01", "2026-11-23")),
        ({"first": "2026-11-20"}, ("2026-11-20", "2026-11-23")),
        ({"first": "2026-11-20", "last": "2027-11-20"}, ("2026-11-20", "2026-11-23")),
    ],
)
def test_days_that_are_not_compared_may_include_today(parameters, days):
    assert span(read_period(parameters, with_today=True)) == days


def test_all_names_are_read():
    assert [read_period({"period": name}).name for name in PERIODS] == [*PERIODS]


@pytest.mark.parametrize("language", ["en", "de", "ar"])
@pytest.mark.parametrize(
    ("now", "first"), [("2026-11-22", "11-09"), ("2026-11-23", "11-16"), ("2026-11-24", "11-16")]
)
def test_weeks_begin_on_monday_in_all_languages(now, first, language):
    with time_machine.travel(f"{now}T12:00:00+00:00"), override(language):
        assert str(named_period("last-week").first_day) == f"2026-{first}"


@pytest.mark.parametrize(
    ("now", "name", "days", "before"),
    [
        ("2028-03-01", "last-month", ("2028-02-01", "2028-02-29"), ("2028-01-03", "2028-01-31")),
        ("2027-01-15", "last-month", ("2026-12-01", "2026-12-31"), ("2026-10-31", "2026-11-30")),
        ("2028-12-31", "this-year", ("2028-01-01", "2028-12-30"), ("2027-01-01", "2027-12-31")),
        ("2027-01-02", "this-year", ("2027-01-01", "2027-01-01"), ("2026-01-01", "2026-01-01")),
        ("2029-03-01", "this-year", ("2029-01-01", "2029-02-28"), ("2028-01-01", "2028-02-28")),
    ],
)
def test_calendar_units_in_leap_years_and_at_the_turn_of_years(now, name, days, before):
    with time_machine.travel(f"{now}T12:00:00+00:00"):
        period = named_period(name)

    assert span(period) == days
    assert span(period.before) == before


def test_on_the_first_day_of_a_year_this_year_is_today():
    with time_machine.travel("2027-01-01T12:00:00+00:00"):
        period = named_period("this-year")

    assert span(period) == ("2027-01-01", "2027-01-01")
    assert period.is_today
    assert period.parameters == {"period": "this-year"}


def test_days_are_read_up_to_today_if_that_is_near():
    near = read_period({"first": "2021-11-20", "last": "2026-11-22"})
    far = read_period({"first": "2016-11-10", "last": "2016-11-12"})

    assert near.read_days == (near.before.first_day, day("2026-11-23"))
    assert far.read_days == (far.before.first_day, far.last_day)


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


@pytest.mark.parametrize("last", ["", "2026-11-23", "2026-12-31", "9999-12-31"])
def test_chosen_days_end_yesterday_at_the_latest(last):
    period = read_period({"first": "2026-11-20", "last": last})

    assert span(period) == ("2026-11-20", "2026-11-22")


@pytest.mark.parametrize("last", ["", "2026-11-23", "2026-12-31"])
def test_from_today_on_there_is_only_today(last):
    assert read_period({"first": "2026-11-23", "last": last}).is_today


def test_days_win_over_a_name():
    assert read_period({"first": "2026-11-20", "last": "2026-11-21", "period": "7"}).days == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"period": "8"},
            "Invalid period: “8”. Use one of today, yesterday, 7, 30, 90, 365, last-week, ",
        ),
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
    with pytest.raises(InvalidArgument) as raised:
        read_period(parameters)

    assert message in str(raised.value)
