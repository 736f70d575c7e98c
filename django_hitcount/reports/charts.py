"""
Where the parts of a chart are. Templates draw them as SVG.

Positions along the time axis are percentages of the width, from the left; in languages like Arabic,
time goes from right to left. So a chart fits any width while its text keeps its size. Positions
from top to bottom are pixels.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Literal, NamedTuple

from django.utils.translation import get_language_bidi

HEIGHT = 216
TOP = 30
"""Above it is room for the values of the bar that is pointed at."""

BOTTOM = 190
"""The lowest line. Below it are the days."""

MOST_DAYS = 92
"""Bars of days: more than these are too thin to point at, so they become weeks."""

MOST_WEEKS = 92

MOST_LABELS = 6
"""Days written below the axis. So many fit beside each other on a telephone."""

FURTHEST_MIDDLE = 94
"""In percent of the chart. A day written around a later point would be cut off at the edge."""

MOST_INTERVALS = 4
"""Intervals between the numbers of the axis: few enough to be quiet, many enough to read."""

WIDEST_BAR = 6.0
"""In percent of the chart. A few days are not drawn as a wall."""

SHARE_IN_FRONT, SHARE_BEHIND, SHARE_ALONE = 0.5, 0.9, 0.7
"""How much of its column a bar takes. Bars of the period before look out behind the others."""

Third = Literal["start", "middle", "end"]
Unit = Literal["day", "week", "month"]


class Box(NamedTuple):
    """A rectangle: two percentages of the chart's width, and two numbers of pixels."""

    left: float
    width: float
    top: float
    height: float


class Bar(NamedTuple):
    """The hits of a day, a week or a month, and those of the same days of the period before."""

    first_day: datetime.date
    last_day: datetime.date
    hits: int
    before: int | None
    """None if the period before has no such days."""

    front: Box
    behind: Box | None
    position: Third
    """The third of the chart that the bar is in: where its values are shown."""


class HitsTick(NamedTuple):
    """A line of the chart, and the number of hits beside it."""

    hits: int
    top: float


class DayTick(NamedTuple):
    """A day that is written below its bar."""

    day: datetime.date
    number: int
    """The place of the bar, from 1."""

    left: float
    anchor: Third


@dataclass(frozen=True, kw_only=True, slots=True)
class BarChart:
    """Bars in the order of time, the lines behind them, and what is written below them."""

    unit: Unit
    bars: Sequence[Bar]
    lines: Sequence[HitsTick]
    days: Sequence[DayTick]
    height: int = HEIGHT

    @property
    def has_before(self) -> bool:
        return any(bar.before is not None for bar in self.bars)


def bar_chart(
    hits: Mapping[datetime.date, int], before: Mapping[datetime.date, int] | None = None
) -> BarChart:
    """
    Lay out the chart of ``hits`` by day, with those of the period ``before`` behind it.

    Both have their days in order and without gaps. The n-th day of one is drawn over the n-th of
    the other. A bar is a day; of more than 92 days a week, and of more than 92 weeks a month.
    """
    days, counts, earlier = [*hits], [*hits.values()], [*(before or {}).values()]
    unit = unit_for(len(days))
    parts = [*_split(days, unit)]
    fronts = [sum(counts[part]) for part in parts]
    behinds = [sum(earlier[part]) if earlier[part] else None for part in parts]
    known = [*fronts, *(value for value in behinds if value is not None)]
    scale = nice_ticks(min(known, default=0), max(known, default=0))
    step = 100 / max(len(parts), 1)
    share = SHARE_IN_FRONT if before else SHARE_ALONE
    columns = enumerate(zip(parts, fronts, behinds, strict=True))
    bars = [
        Bar(
            first_day=days[part][0],
            last_day=days[part][-1],
            hits=front,
            before=behind,
            front=_box(front, number * step, step, share, scale),
            behind=(
                None if behind is None else _box(behind, number * step, step, SHARE_BEHIND, scale)
            ),
            position=_third((number + 0.5) * step),
        )
        for number, (part, front, behind) in columns
    ]
    return BarChart(
        unit=unit,
        bars=bars,
        lines=[HitsTick(tick, _top(tick, scale)) for tick in scale],
        days=[*_label_days([bar.first_day for bar in bars], step)],
    )


def unit_for(number_of_days: int) -> Unit:
    """Return what one bar of a chart of so many days stands for."""
    if number_of_days <= MOST_DAYS:
        return "day"
    return "week" if number_of_days <= 7 * MOST_WEEKS else "month"


def _split(days: Sequence[datetime.date], unit: Unit) -> Iterator[slice]:
    """
    Split days into those of each bar.

    Weeks are counted back from the last day, so that the newest bar is a whole week and does not
    look like a slump.
    """

    def part_of(number: int) -> object:
        day = days[number]
        in_weeks = (len(days) - 1 - number) // 7
        return {"day": day, "week": in_weeks, "month": (day.year, day.month)}[unit]

    for _, group in groupby(range(len(days)), key=part_of):
        numbers = [*group]
        yield slice(numbers[0], numbers[-1] + 1)


def _box(hits: int, start: float, step: float, share: float, scale: Sequence[int]) -> Box:
    width = share * min(step, WIDEST_BAR / SHARE_BEHIND)
    top, foot = sorted((_top(hits, scale), _top(0, scale)))
    left = _mirror(start + (step - width) / 2, width)
    return Box(left, round(width, 3), top, round(foot - top, 2))


def _mirror(start: float, width: float = 0) -> float:
    """Return the left edge of what begins at ``start``, where a line of text begins."""
    return round(100 - start - width if get_language_bidi() else start, 3)


def _top(hits: int, scale: Sequence[int]) -> float:
    return round(BOTTOM - (hits - scale[0]) / (scale[-1] - scale[0]) * (BOTTOM - TOP), 2)


def _third(middle: float) -> Third:
    if middle < 100 / 3:
        return "start"
    return "end" if middle > 200 / 3 else "middle"


def _label_days(days: Sequence[datetime.date], step: float) -> Iterator[DayTick]:
    every = -(-len(days) // MOST_LABELS) if len(days) > MOST_LABELS + 1 else 1
    for number in range(0, len(days), every):
        middle = (number + 0.5) * step
        anchor: Third = "end" if middle > FURTHEST_MIDDLE else "middle"
        yield DayTick(days[number], number + 1, _mirror(middle), anchor)


def nice_ticks(lowest: int, highest: int) -> list[int]:
    """
    Return whole numbers, equally far apart, that begin at or below ``lowest`` and end above.

    They are multiples of 1, 2 or 5 times a power of ten, so people read them at a glance. At
    least 0 and 1 are among them.
    """
    low, high = min(lowest, 0), max(highest, 1)
    steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in steps if high - low <= MOST_INTERVALS * step)
    return [*range(low // step * step, -(-high // step) * step + 1, step)]


class Sparkline(NamedTuple):
    """A line of hits by day, small enough for a row of a table."""

    first_day: datetime.date
    last_day: datetime.date
    hits: int
    """The sum of all days."""

    points: str
    """What the attribute ``points`` of a polyline has. The newest day is last."""

    width: int
    height: int
    """In units of the points: days, and hits. The line is drawn in any size."""


def sparkline(hits: Mapping[datetime.date, int]) -> Sparkline:
    """Lay out a line of ``hits`` by day, which has some days, in order and without gaps."""
    days, values = [*hits], [*hits.values()]
    low, high = min(*values, 0), max(*values, 1)
    return Sparkline(
        first_day=days[0],
        last_day=days[-1],
        hits=sum(values),
        points=" ".join(f"{number},{high - value}" for number, value in enumerate(values)),
        width=len(days) - 1,
        height=high - low,
    )
