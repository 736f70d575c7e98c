"""On which day a hit falls."""

from __future__ import annotations

import datetime

import pytest
import time_machine
from django.utils import timezone

from django_hitcount.counters.days import day_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("at", "day"),
    [
        # Berlin: one hour ahead of UTC in winter, two in summer.
        ("2026-01-31T22:59:59+00:00", "2026-01-31"),
        ("2026-01-31T23:00:00+00:00", "2026-02-01"),
        ("2026-06-30T21:59:59+00:00", "2026-06-30"),
        ("2026-06-30T22:00:00+00:00", "2026-07-01"),
        # The nights when the clocks change.
        ("2026-03-28T23:00:00+00:00", "2026-03-29"),
        ("2026-10-25T22:59:59+00:00", "2026-10-25"),
    ],
)
@pytest.mark.parametrize("activated", ["Europe/Berlin", "Pacific/Auckland", "America/Los_Angeles"])
def test_day_is_that_of_the_site_not_of_the_visitor(at, day, activated):
    at = datetime.datetime.fromisoformat(at)

    with timezone.override(activated), time_machine.travel(at, tick=False):
        assert day_of().isoformat() == day
        assert day_of(at).isoformat() == day
        assert day_of(at.astimezone(datetime.UTC)).isoformat() == day


def test_day_without_time_zone_support(settings):
    settings.USE_TZ = False

    assert day_of(datetime.datetime(2026, 1, 31, 23, 59)).isoformat() == "2026-01-31"
    with time_machine.travel("2026-01-31T23:30:00+00:00", tick=False):
        assert day_of().isoformat() == "2026-02-01"
