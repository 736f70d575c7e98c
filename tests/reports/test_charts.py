from __future__ import annotations

import datetime

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from django_hitcount.reports.charts import (
    BOTTOM,
    MOST_DAYS,
    MOST_LABELS,
    MOST_WEEKS,
    TOP,
    WIDEST_BAR,
    bar_chart,
    sparkline,
    unit_for,
)

FIRST = datetime.date(2026, 1, 1)


def by_day(*hits, first=FIRST):
    return {first + datetime.timedelta(days=number): value for number, value in enumerate(hits)}


def base_of(chart):
    """The line of no hits, where bars start."""
    return next(line.top for line in chart.lines if line.hits == 0)


def test_a_bar_is_as_high_as_its_hits():
    chart = bar_chart(by_day(0, 5, 10))

    heights = [bar.front.height for bar in chart.bars]
    assert heights == [0, (BOTTOM - TOP) / 2, BOTTOM - TOP]
    assert [bar.front.top + bar.front.height for bar in chart.bars] == [BOTTOM] * 3


def test_taken_back_hits_hang_below_the_line():
    chart = bar_chart(by_day(4, -4))
    above, below = (bar.front for bar in chart.bars)

    assert above.top < base_of(chart) == above.top + above.height
    assert below.top == base_of(chart)
    assert below.height == above.height


def test_bars_are_in_the_middle_of_equal_columns():
    first, second = (bar.front for bar in bar_chart(by_day(*[1] * 50)).bars[:2])

    assert first.left + first.width / 2 == pytest.approx(1)
    assert second.left + second.width / 2 == pytest.approx(3)


def test_right_to_left_positions_mirror_the_others():
    chart = bar_chart(by_day(1, 2, 3, 4))
    with override("ar"):
        mirrored = bar_chart(by_day(1, 2, 3, 4))

    lefts = [bar.front.left for bar in chart.bars]
    assert [bar.front.left for bar in mirrored.bars] == pytest.approx(lefts[::-1], abs=0.01)
    assert [tick.left for tick in mirrored.days] == [tick.left for tick in chart.days][::-1]


def test_few_bars_are_not_a_wall():
    (bar,) = bar_chart(by_day(7)).bars

    assert bar.front.width < WIDEST_BAR
    assert bar.front.left + bar.front.width / 2 == pytest.approx(50, abs=0.01)


def test_the_period_before_is_behind_and_wider():
    before = by_day(8, 6, first=FIRST - datetime.timedelta(days=2))
    bars = bar_chart(by_day(4, 2), before).bars

    assert [bar.before for bar in bars] == [8, 6]
    for bar in bars:
        assert bar.behind
        assert bar.behind.left < bar.front.left
        assert bar.behind.width > bar.front.width
        assert bar.behind.height > bar.front.height


def test_without_a_period_before_nothing_is_behind():
    chart = bar_chart(by_day(4, 2))

    assert not chart.has_before
    assert [bar.behind for bar in chart.bars] == [None, None]


@pytest.mark.parametrize(
    ("days", "unit"),
    [
        (1, "day"),
        (MOST_DAYS, "day"),
        (MOST_DAYS + 1, "week"),
        (365, "week"),
        (7 * MOST_WEEKS, "week"),
        (7 * MOST_WEEKS + 1, "month"),
        (3660, "month"),
    ],
)
def test_many_days_become_weeks_and_months(days, unit):
    assert unit_for(days) == bar_chart(by_day(*[1] * days)).unit == unit


def test_the_newest_week_is_whole():
    bars = bar_chart(by_day(*[1] * 365)).bars

    assert [bar.hits for bar in bars] == [1, *[7] * 52]
    assert bars[-1].last_day == FIRST + datetime.timedelta(days=364)


def test_months_are_those_of_the_calendar():
    bars = bar_chart(by_day(*[1] * 700)).bars

    assert [bar.hits for bar in bars[:3]] == [31, 28, 31]
    assert [bar.first_day.day for bar in bars] == [1] * len(bars)


@given(st.lists(st.integers(-5, 1000), min_size=1, max_size=800))
def test_no_hit_is_left_out(hits):
    chart = bar_chart(by_day(*hits), by_day(*hits))

    assert sum(bar.hits for bar in chart.bars) == sum(hits)
    assert sum(bar.before or 0 for bar in chart.bars) == sum(hits)
    assert len(chart.bars) <= max(MOST_DAYS, MOST_WEEKS)
    assert len(chart.days) <= MOST_LABELS + 1


def test_a_day_at_the_far_edge_is_written_inwards():
    days = bar_chart(by_day(*[1] * 30)).days
    last = bar_chart(by_day(*[1] * 43)).days

    assert days[0].day == FIRST
    assert {day.anchor for day in days} == {"middle"}
    assert [day.anchor for day in last][-1] == "end"


def test_values_are_shown_on_the_side_of_their_bar():
    positions = [bar.position for bar in bar_chart(by_day(1, 2, 3)).bars]

    assert positions == ["start", "middle", "end"]


def test_no_days_are_an_empty_chart():
    chart = bar_chart({})

    assert (chart.bars, chart.days, base_of(chart)) == ([], [], BOTTOM)


def test_sparkline_goes_from_the_first_day_to_the_last():
    line = sparkline(by_day(0, 2, 4))

    assert (line.points, line.width, line.height) == ("0,4 1,2 2,0", 2, 4)
    assert (line.first_day, line.last_day) == (FIRST, FIRST + datetime.timedelta(days=2))
    assert line.hits == 6


def test_sparkline_of_no_hits_is_low():
    line = sparkline(by_day(0, 0))

    assert (line.points, line.height) == ("0,1 1,1", 1)


def test_sparkline_has_room_for_hits_that_were_taken_back():
    line = sparkline(by_day(3, -2))

    assert (line.points, line.height) == ("0,0 1,5", 5)
