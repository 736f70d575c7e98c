"""What the page of statistics of an object shows."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import Correction
from django_hitcount.reports.charts import BarChart, bar_chart, unit_for
from django_hitcount.reports.labels import label_counter
from django_hitcount.series import hits_by_day, visitors_by_day
from django_hitcount.totals import get_totals_of
from django_hitcount.unique_visitors import Visitors, visitors_between

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
    return next((days for days in PERIODS if _first_day(days, today) <= first_day), PERIODS[-1])


def read_statistics(obj: Model, choice: Choice) -> Statistics:
    """
    Read the statistics of an object.

    Costs a query for all totals and one for the corrections, one for the hits of each counter, and
    one for each of RANGES and one for the chart if the counter counts visitors.
    """
    today = day_of()
    series = _read_series(obj, choice, today)
    hits = series[choice.counter]
    chart = bar_chart(hits)
    corrections = _read_corrections(obj)
    return Statistics(
        choice=choice,
        periods=PERIODS,
        first_day=_first_day(choice.days, today),
        last_day=today,
        hits=sum(hits.values()),
        has_hits=any(hits.values()),
        hits_label=_LABELS[chart.unit] % {"counter": label_counter(choice.counter)},
        hits_chart=chart,
        visitors_chart=_chart_visitors(obj, [*hits], choice.counter),
        rows=_read_rows(obj, series, today),
        corrections=corrections[:MOST_CORRECTIONS],
        has_more_corrections=len(corrections) > MOST_CORRECTIONS,
    )


def _first_day(days: int, today: datetime.date) -> datetime.date:
    return today - datetime.timedelta(days=days - 1)


def _read_series(
    obj: Model, choice: Choice, today: datetime.date
) -> dict[str, dict[datetime.date, int]]:
    """Read the hits by day: of the chosen counter for the chart, of the others for the table."""
    days = dict.fromkeys(conf.get_config().counters, max(RANGES)) | {choice.counter: choice.days}
    return {
        counter: hits_by_day(obj, _first_day(length, today), today, counter=counter)
        for counter, length in days.items()
    }


def _chart_visitors(obj: Model, days: Sequence[datetime.date], counter: str) -> BarChart | None:
    """Chart the visitors of each day. The visitors of weeks are not the sums of those of days."""
    if unit_for(len(days)) != "day" or not conf.get_config().counters[counter].visitors:
        return None
    return bar_chart(visitors_by_day(obj, days[0], days[-1], counter=counter))


def _read_rows(
    obj: Model, series: Mapping[str, Mapping[datetime.date, int]], today: datetime.date
) -> list[CounterNumbers]:
    keys = {counter: counter_key(obj, counter=counter) for counter in series}
    totals = get_totals_of(keys.values())
    return [
        CounterNumbers(
            counter=counter,
            label=label_counter(counter),
            hits=[sum([*hits.values()][-days:]) for days in RANGES],
            total=totals[keys[counter]],
            visitors=_read_visitors(obj, counter, today),
        )
        for counter, hits in series.items()
    ]


def _read_visitors(obj: Model, counter: str, today: datetime.date) -> list[Visitors]:
    if not conf.get_config().counters[counter].visitors:
        return []
    return [
        visitors_between(obj, _first_day(days, today), today, counter=counter) for days in RANGES
    ]


def _read_corrections(obj: Model) -> list[Correction]:
    """Read the newest corrections of all counters, and one more than the page shows."""
    key = counter_key(obj, counter=conf.DEFAULT_COUNTER)
    made = Correction.objects.using(hits_alias()).filter(
        content_type_id=key.content_type_id, object_id=key.object_id
    )
    return [*made.order_by("-made_at", "-pk")[: MOST_CORRECTIONS + 1]]
