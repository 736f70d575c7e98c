"""Time rankings, sorted lists and series beside ten rows by primary key."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from statistics import median
from typing import Any

from django.db.models import QuerySet, Sum

from benchmarks.app.models import Story
from benchmarks.report import Target, print_table, times
from benchmarks.timing import alternate, seconds_of
from benchmarks.traffic import SEED
from benchmarks.traffic_files import COUNTER
from django_hitcount.counters.days import last_days
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.models import DailyHitSlot, HitSlot
from django_hitcount.rankings import popular, trending
from django_hitcount.series import hits_by_day

TURNS, QUICK_TURNS = 7, 1
CALLS = 10
"""Calls in a row of what is fast."""

LIMIT = 10
PAGE = 100
"""Rows on a page of the admin."""

DAYS = 30
BY_KEY = "ten rows by primary key"
LIST = f"{PAGE} rows in the order of the primary key"
BY_FIELD = f"{PAGE} rows in the order of a HitCountField"

MOST = {
    "popular(10)": 5,
    f"popular(10, days={DAYS})": 100,
    "trending(10)": 100,
}
"""How many times as long as ten rows by primary key a ranking may take."""

Work = Callable[[], object]


def measure(alias: str, *, objects: int, quick: bool) -> list[Target]:
    """Print a table, and return the targets."""
    seconds = {name: seconds_of(work) for name, work in _slow().items()}
    fast = _fast(objects)
    for work in fast.values():
        work()  # So that what it reads is in memory.
    measures = {name: partial(_median_of, CALLS, work) for name, work in fast.items()}
    seconds |= alternate(measures, turns=QUICK_TURNS if quick else TURNS)
    print_table(
        f"Rankings, lists and series, {alias}",
        ["", "ms", BY_KEY],
        [
            [name, f"{value * 1000:,.2f}", times(value / seconds[BY_KEY])]
            for name, value in seconds.items()
        ],
    )
    return [
        *(_target(alias, seconds, name, BY_KEY, most) for name, most in MOST.items()),
        _target(alias, seconds, BY_FIELD, LIST, 2),
    ]


def _target(
    alias: str, seconds: Mapping[str, float], name: str, beside: str, at_most: float
) -> Target:
    ratio = seconds[name] / seconds[beside]
    return Target(what=f"{alias}: {name} / {beside}", ratio=ratio, at_most=at_most)


def _median_of(calls: int, work: Work) -> float:
    return median(seconds_of(work) for _ in range(calls))


def _fast(objects: int) -> dict[str, Work]:
    keys = Random(SEED).sample(range(1, objects + 1), LIMIT)
    first, last = _period()
    return {
        BY_KEY: lambda: [*Story.objects.filter(pk__in=keys)],
        "popular(10)": lambda: popular(Story, LIMIT),
        f"popular(10, days={DAYS})": lambda: popular(Story, LIMIT, days=DAYS),
        "trending(10)": lambda: trending(Story, LIMIT),
        LIST: lambda: [*Story.objects.order_by("-pk")[:PAGE]],
        BY_FIELD: lambda: [*Story.objects.order_by("-views_total", "-pk")[:PAGE]],
        f"hits of the model on {DAYS} days": lambda: hits_by_day(
            Story, first_day=first, last_day=last
        ),
        f"hits of the site on {DAYS} days": lambda: hits_by_day(
            None, first_day=first, last_day=last
        ),
    }


def _slow() -> dict[str, Work]:
    """Return the same by the plain sums of all rows, which take long enough to measure once."""
    stories = {"content_type_id": content_type_id_of(Story), "counter": COUNTER}
    slots = HitSlot.objects.filter(**stories)
    daily = DailyHitSlot.objects.filter(**stories, day__range=_period())
    return {
        "GROUP BY object": lambda: [*_sums(slots, "object_id").order_by("-sum")[:LIMIT]],
        f"GROUP BY object on {DAYS} days": lambda: [
            *_sums(daily, "object_id").order_by("-sum")[:LIMIT]
        ],
        f"GROUP BY day on {DAYS} days": lambda: [*_sums(daily, "day").order_by("day")],
    }


def _sums(rows: QuerySet[Any], column: str) -> QuerySet[Any]:
    return rows.values(column).annotate(sum=Sum("hits"))


def _period() -> tuple[datetime.date, datetime.date]:
    days = last_days(DAYS)
    return min(days), max(days)
