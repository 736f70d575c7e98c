"""What the page of statistics of an object shows."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.counters.days import last_days, list_days
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.sums import Sums
from django_hitcount.db.tables import Correction
from django_hitcount.reports.charts import BarChart, bar_chart
from django_hitcount.reports.labels import label_counter
from django_hitcount.reports.rows import file_name, write_csv
from django_hitcount.reports.selection import Period, Selection, read_selection
from django_hitcount.series import day_range, hits_by_day, read_counters
from django_hitcount.totals import get_totals_of
from django_hitcount.unique_visitors import VisitorsOfDays, read_visitors_of_days

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
class Choice(Selection):
    """What the address of the page asks for, and what was wrong with it."""

    beside: str | None = None
    """The key of the object to compare with; empty: the one before; None: none."""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address: the default counter is another for each ModelAdmin."""
        beside = {} if self.beside is None else {"beside": self.beside}
        return {**self.period.parameters, "counter": self.counter, **beside}


class CounterNumbers(NamedTuple):
    """The hits of a counter, and its visitors if they are counted."""

    counter: str
    label: str
    hits: Sequence[int]
    """The hits of each of RANGES."""

    total: int
    visitors: Sequence[Visitors | None]
    """
    The visitors of each of RANGES; empty if the counter does not count them.

    None if there are hits, but no visitors were counted, as of imported hits.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """The statistics of an object."""

    choice: Choice
    hits: int
    """The hits of the chosen counter in the chosen days."""

    has_hits: bool
    """Whether a day has hits. Their sum may be 0 all the same, if hits were taken back."""

    hits_label: str
    hits_chart: BarChart
    visitors_chart: BarChart | None
    """None if none were counted in the chosen days, and if bars are not days."""

    rows: Sequence[CounterNumbers]
    corrections: Sequence[Correction]
    has_more_corrections: bool

    @property
    def chosen(self) -> CounterNumbers:
        """The numbers of the chosen counter."""
        return next(row for row in self.rows if row.counter == self.choice.counter)

    @property
    def counts_visitors_twice(self) -> bool:
        """Whether a number of visitors has some of them several times."""
        return not all(visitors is None or visitors.is_distinct for visitors in self._visitors)

    @property
    def lacks_visitors(self) -> bool:
        """Whether a number of visitors is not known."""
        return None in self._visitors

    @property
    def _visitors(self) -> list[Visitors | None]:
        return [visitors for row in self.rows for visitors in row.visitors]


def read_choice(query: Mapping[str, str], *, default: str) -> Choice:
    """
    Read the counter and the days from the query of an address, as read_selection() does.

    Today is among the days, since they are not compared with those before: an object of today has
    no others.
    """
    chosen = {name: value for name, value in query.items() if value}
    selection = read_selection({"counter": default, **chosen}, with_today=True)
    return Choice(
        period=selection.period,
        counter=selection.counter,
        problems=selection.problems,
        beside=query.get("beside"),
    )


def read_statistics(obj: Model, choice: Choice) -> Statistics:
    """
    Read the statistics of an object.

    Whatever the number of counters, costs a query for the hits, one for the corrections, one for
    the visitors if a counter has that option, and one for the totals if the buffer does not know
    them all. With Redis, costs two round trips, one for the visitors, one for totals that Redis
    does not know, and one for each hundred sketches of days that are counted together. Days that
    ended before the last 30 cost a query and a round trip more for the hits, and for the visitors.
    """
    keys = {name: counter_key(obj, counter=name) for name in conf.get_config().counters}
    key, period = keys[choice.counter], choice.period
    sums = _read_hits(keys.values(), period)
    hits = {day: sums[choice.counter, day] for day in period.list_days()}
    chart = bar_chart(hits)
    # The visitors of a week are not the sum of those of its days.
    charted = period if chart.unit == "day" and choice.counts_visitors else None
    visitors = _read_visitors(keys.values(), key, charted)
    corrections = _read_corrections(key)
    return Statistics(
        choice=choice,
        hits=sum(hits.values()),
        has_hits=any(hits.values()),
        hits_label=_LABELS[chart.unit] % {"counter": label_counter(choice.counter)},
        hits_chart=chart,
        visitors_chart=_chart_visitors(visitors, key, charted),
        rows=_count_rows(keys, sums, visitors),
        corrections=corrections[:MOST_CORRECTIONS],
        has_more_corrections=len(corrections) > MOST_CORRECTIONS,
    )


def days_csv(obj: Model, choice: Choice) -> Iterator[str]:
    """Write the hits of each chosen day, and the visitors if the counter counts them."""
    key, days = counter_key(obj, counter=choice.counter), choice.period.ends
    hits = hits_by_day(obj, first_day=days[0], last_day=days[1], counter=choice.counter)
    if not choice.counts_visitors:
        return write_csv([gettext("Day"), gettext("Hits")], hits.items())
    visitors = read_visitors_of_days([key], *days).by_day(key)
    return write_csv(
        [gettext("Day"), gettext("Hits"), gettext("Visitors")],
        [(day, number, visitors.get(day, None if number else 0)) for day, number in hits.items()],
    )


def days_file_name(obj: Model, choice: Choice) -> str:
    """Return the name of the file with days_csv(): the object, the counter and the days."""
    label = obj._meta.label_lower.replace(".", "-")
    return file_name(choice.period, "days", label, str(obj.pk), choice.counter)


def _counts_visitors(key: CounterKey) -> bool:
    return conf.get_config().counters[key.counter].visitors


def _ranges_to_read(period: Period) -> list[tuple[datetime.date, datetime.date]]:
    """Return the days of RANGES, and those of ``period``: one range, or two with days between."""
    first_day, today = last_days(max(RANGES))
    if period.last_day < first_day:
        return [(first_day, today), period.ends]
    return [(min(first_day, period.first_day), today)]


def _read_hits(keys: Collection[CounterKey], period: Period) -> Sums:
    sums: Sums = Counter()
    for days in _ranges_to_read(period):
        sums.update(read_counters(keys, day_range(*days)))
    return sums


def _read_visitors(
    keys: Iterable[CounterKey], chosen: CounterKey, charted: Period | None
) -> VisitorsOfDays:
    """Read the visitors of all days that are shown, of the counters that count them."""
    wanted = [key for key in keys if _counts_visitors(key)]
    first_day, _ = recent = last_days(max(RANGES))
    days, *others = _ranges_to_read(charted) if charted else [recent]
    found = read_visitors_of_days(wanted, *days, sketches_from=first_day)
    if not others:
        return found
    earlier = read_visitors_of_days([chosen], *others[0])
    return VisitorsOfDays(
        {**found.in_buffer, **earlier.in_buffer}, {**found.in_tables, **earlier.in_tables}
    )


def _chart_visitors(
    visitors: VisitorsOfDays, key: CounterKey, charted: Period | None
) -> BarChart | None:
    counted = visitors.by_day(key)
    days = charted.list_days() if charted else []
    if not any(day in counted for day in days):
        return None
    return bar_chart({day: counted.get(day, 0) for day in days})


def _count_rows(
    keys: Mapping[str, CounterKey], sums: Sums, visitors: VisitorsOfDays
) -> list[CounterNumbers]:
    ranges = [last_days(days) for days in RANGES]
    totals = get_totals_of(keys.values())
    of_key = {key: [CounterRange(key, *days) for days in ranges] for key in keys.values()}
    counts = visitors.of_ranges(chain(*[of_key[key] for key in of_key if _counts_visitors(key)]))
    rows = []
    for name, key in keys.items():
        hits = [sum(sums[name, day] for day in list_days(*days)) for days in ranges]
        of_ranges = [counts[each] for each in of_key[key] if each in counts]
        known = [
            count if count.spans or not number else None
            for count, number in zip(of_ranges, hits, strict=False)
        ]
        rows.append(CounterNumbers(name, label_counter(name), hits, totals[key], known))
    return rows


def _read_corrections(key: CounterKey) -> list[Correction]:
    """Read the newest corrections of all counters of an object, and one more than is shown."""
    made = Correction.objects.using(hits_alias()).filter(
        content_type_id=key.content_type_id, object_id=key.object_id
    )
    return [*made.order_by("-made_at", "-pk")[: MOST_CORRECTIONS + 1]]
