"""What the page of statistics of an object shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.counters.days import day_of, days_until, list_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.series import Sums
from django_hitcount.db.tables import Correction
from django_hitcount.reports.charts import BarChart, bar_chart, unit_for
from django_hitcount.reports.labels import label_counter
from django_hitcount.series import day_range, read_counters
from django_hitcount.totals import get_totals_of
from django_hitcount.visitor_ranges import (
    VisitorsOfDays,
    count_each_day,
    count_ranges,
    read_visitors_of_days,
)

PERIODS = (30, 90, 365)
"""Periods to choose from, in days, today included."""

RANGES = (1, 7, 30)
"""The ranges of days in the table of counters."""

_LABELS = {
    "day": _("%(counter)s per day"),
    "week": _("%(counter)s per week"),
    "month": _("%(counter)s per month"),
}

MOST_CORRECTIONS = 50
"""Corrections that the page shows, the newest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What the address of the page asks for."""

    counter: str
    days: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterNumbers:
    """The hits of a counter, and its visitors if they are counted."""

    counter: str
    label: str
    hits: Sequence[int]
    """The hits of each of RANGES."""

    total: int
    visitors: Sequence[Visitors]
    """The visitors of each of RANGES; empty if they are not counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """The statistics of an object."""

    choice: Choice
    periods: Sequence[int]
    first_day: datetime.date
    last_day: datetime.date
    hits: int
    """The hits of the chosen counter in the chosen days."""

    has_hits: bool
    """Whether a day has hits. Their sum may be 0 all the same, if hits were taken back."""

    hits_label: str
    hits_chart: BarChart
    visitors_chart: BarChart | None
    """None if the chosen counter does not count visitors, and if bars are not days."""

    rows: Sequence[CounterNumbers]
    corrections: Sequence[Correction]
    has_more_corrections: bool

    @property
    def chosen(self) -> CounterNumbers:
        """The numbers of the chosen counter."""
        return next(row for row in self.rows if row.counter == self.choice.counter)

    @property
    def can_go_back(self) -> bool:
        """Whether there is a longer period to choose."""
        return self.choice.days < max(self.periods)

    @property
    def counts_visitors_twice(self) -> bool:
        """Whether a number of visitors has some of them several times."""
        return not all(visitors.is_distinct for row in self.rows for visitors in row.visitors)


def read_choice(query: Mapping[str, str], *, default: str) -> Choice:
    """Read the counter and the days from the query of an address. Ignores what is invalid."""
    counter, days = query.get("counter", ""), query.get("days", "")
    is_known = counter in conf.get_config().counters
    return Choice(
        counter=counter if is_known else default,
        days=next((period for period in PERIODS if str(period) == days), PERIODS[0]),
    )


def days_back_to(first_day: datetime.date) -> int:
    """Return the shortest period that reaches back to a day, or the longest if none does."""
    today = day_of()
    return next((days for days in PERIODS if days_until(today, days)[0] <= first_day), PERIODS[-1])


def read_statistics(obj: Model, choice: Choice) -> Statistics:
    """
    Read the statistics of an object.

    Whatever the number of counters, costs a query for the hits, one for the corrections, one for
    the visitors if a counter has that option, and one for the totals if the buffer does not know
    them all. With Redis, costs two round trips, one for the visitors, one for totals that Redis
    does not know, and one for each hundred sketches of days that are counted together.
    """
    today = day_of()
    keys = {name: counter_key(obj, counter=name) for name in conf.get_config().counters}
    sums = read_counters(keys.values(), day_range(*days_until(today, max(choice.days, *RANGES))))
    first_day, _ = days_until(today, choice.days)
    hits = {day: sums[choice.counter, day] for day in list_days(first_day, today)}
    visitors = _read_visitors(keys.values(), choice, today)
    chart = bar_chart(hits)
    corrections = _read_corrections(keys[choice.counter])
    return Statistics(
        choice=choice,
        periods=PERIODS,
        first_day=first_day,
        last_day=today,
        hits=sum(hits.values()),
        has_hits=any(hits.values()),
        hits_label=_LABELS[chart.unit] % {"counter": label_counter(choice.counter)},
        hits_chart=chart,
        visitors_chart=_chart_visitors(visitors, keys[choice.counter], choice, today),
        rows=_count_rows(keys, sums, visitors, today),
        corrections=corrections[:MOST_CORRECTIONS],
        has_more_corrections=len(corrections) > MOST_CORRECTIONS,
    )


def _counts_visitors(key: CounterKey) -> bool:
    return conf.get_config().counters[key.counter].visitors


def _read_visitors(
    keys: Iterable[CounterKey], choice: Choice, today: datetime.date
) -> VisitorsOfDays:
    """Read the visitors of all days that are shown, of the counters that count them."""
    wanted = [key for key in keys if _counts_visitors(key)]
    days = max(choice.days if _has_bars_of_days(choice.days) else 0, *RANGES)
    sketches_from, _ = days_until(today, max(RANGES))
    return read_visitors_of_days(wanted, *days_until(today, days), sketches_from=sketches_from)


def _has_bars_of_days(days: int) -> bool:
    """Return whether visitors can be charted: those of a week are not the sum of its days."""
    return unit_for(days) == "day"


def _chart_visitors(
    visitors: VisitorsOfDays, key: CounterKey, choice: Choice, today: datetime.date
) -> BarChart | None:
    if not (_has_bars_of_days(choice.days) and _counts_visitors(key)):
        return None
    return bar_chart(count_each_day(visitors, key, *days_until(today, choice.days)))


def _count_rows(
    keys: Mapping[str, CounterKey], sums: Sums, visitors: VisitorsOfDays, today: datetime.date
) -> list[CounterNumbers]:
    totals = get_totals_of(keys.values())
    ranges = {
        name: [(key, *days_until(today, days)) for days in RANGES]
        for name, key in keys.items()
        if _counts_visitors(key)
    }
    counts = count_ranges(visitors, [*chain.from_iterable(ranges.values())])
    return [
        CounterNumbers(
            counter=name,
            label=label_counter(name),
            hits=[
                sum(sums[name, day] for day in list_days(*days_until(today, days)))
                for days in RANGES
            ],
            total=totals[key],
            visitors=[counts[wanted] for wanted in ranges.get(name, ())],
        )
        for name, key in keys.items()
    ]


def _read_corrections(key: CounterKey) -> list[Correction]:
    """Read the newest corrections of all counters of an object, and one more than is shown."""
    made = Correction.objects.using(hits_alias()).filter(
        content_type_id=key.content_type_id, object_id=key.object_id
    )
    return [*made.order_by("-made_at", "-pk")[: MOST_CORRECTIONS + 1]]
