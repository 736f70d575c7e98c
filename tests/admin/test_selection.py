"""What the parameters of an address choose."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.admin.pages import SelectionForm
from django_hitcount.reports.selection import PERIODS, named_period
from tests.reports.periods import span

pytestmark = pytest.mark.usefixtures("late_on_a_sunday")


def day(text):
    return datetime.date.fromisoformat(text)


def read_period(parameters, **options):
    form = SelectionForm(parameters, files=[], **options)
    assert form.is_valid()
    return form.selection.period


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


@pytest.mark.parametrize("last", ["2026-11-20", ""])
def test_first_day_that_is_no_date_is_the_only_error(last):
    form = SelectionForm({"first": "2026-02-30", "last": last}, files=[])

    assert form.errors == {"first": ["Enter a valid date."]}


def test_all_names_are_read():
    assert [read_period({"period": name}).name for name in PERIODS] == [*PERIODS]


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
    ("parameters", "field", "message"),
    [
        ({"period": "8"}, "period", "Select a valid choice. 8 is not one of the available"),
        ({"first": "2026-02-30"}, "first", "Enter a valid date."),
        ({"first": "yesterday"}, "first", "Enter a valid date."),
        ({"last": "2026-11-20"}, "last", "Give the first day (From), too."),
        ({"first": "2026-11-24"}, "first", "This day is in the future."),
        ({"first": "9999-12-30", "last": "9999-12-31"}, "first", "This day is in the future."),
        ({"first": "2026-11-20", "last": "?"}, "last", "Enter a valid date."),
        ({"first": "2026-11-20", "last": "2026-11-19"}, "last", "Choose 1 to 1,830 days."),
        ({"first": "2020-01-01", "last": "2026-11-19"}, "last", "Choose 1 to 1,830 days."),
        ({"first": "0001-01-01", "last": "0001-01-02"}, "first", "Ensure this value is greater"),
    ],
)
def test_invalid_parameters_are_named_and_the_default_is_chosen(parameters, field, message):
    form = SelectionForm(parameters, files=[])

    assert form.selection.period == named_period("30")
    assert message in form.errors[field][0]
