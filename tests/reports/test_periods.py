from __future__ import annotations

import pytest
import time_machine
from django.utils.translation import override

from django_hitcount.reports.selection import named_period
from tests.reports.periods import span

pytestmark = pytest.mark.usefixtures("late_on_a_sunday")


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
