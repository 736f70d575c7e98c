"""What the page of statistics of an object shows, also beside another from the first day on."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext

from django_hitcount import conf
from django_hitcount.admin.pages import ComparisonForm
from django_hitcount.counters.days import LONGEST_RANGE_DAYS, last_days, list_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import VisitorsOfDays
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.sums import DayRange, Sums
from django_hitcount.db.tables import Correction, hits_alias
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.numbers import count_together, read_numbers, read_visitors_of_days
from django_hitcount.reading import get_hits
from django_hitcount.reports import label_counter, label_object
from django_hitcount.reports.charts import bar_chart
from django_hitcount.reports.rows import change_of, write_csv
from django_hitcount.reports.selection import Selection
from django_hitcount.series import hits_by_day, read_counters

RANGES = (1, 7, 30)
"""The ranges of days in the table of counters."""

MOST_CORRECTIONS = 50
"""Corrections that the page shows, the newest first."""

MOST_DAYS = 90
"""Days of the chart. A bar is a day, which has a number: of more days, it would be a week."""

SPANS = (1, 7, 30, MOST_DAYS)
"""The first so many days, in the table."""

MOST_BEFORE = 20
"""Objects before this one among which the nearest with hits is looked for."""


def read_statistics(obj: Model, selection: Selection) -> dict[str, Any]:
    """
    Read the statistics of an object, for the template.

    Whatever the number of counters, costs a query for the hits, one for the corrections, one for
    the visitors if a counter has that option, and one for the totals if the buffer does not know
    them all. With Redis, costs two round trips, one for the visitors, one for totals that Redis
    does not know, and one for each hundred sketches of days that are counted together.
    """
    counters, period = conf.get_config().counters, selection.period
    keys = {name: counter_key(obj, counter=name) for name in counters}
    key = keys[selection.counter]

    first_day, today = last_days(max(RANGES))
    longest = min(first_day, period.first_day), today
    sums = read_counters(keys.values(), DayRange(*longest))
    hits = {day: sums[selection.counter, day] for day in period.list_days()}
    chart = bar_chart(hits)

    # The visitors of a week are not the sum of those of its days.
    shows_visitors = chart.unit == "day" and selection.counts_visitors
    visitors = read_visitors_of_days(
        [keys[name] for name, options in counters.items() if options.visitors],
        *(longest if shows_visitors else (first_day, today)),
        merged_from=first_day,
    )
    counted = visitors.by_day(key)
    by_day = {day: counted.get(day, 0) for day in hits} if shows_visitors else {}

    corrections = _read_corrections(key)
    rows = _count_rows(keys, sums, visitors)
    numbers = [number for row in rows for number in row["visitors"]]
    return {
        "hits": sum(hits.values()),
        # Their sum may be 0 all the same, if hits were taken back.
        "has_hits": any(hits.values()),
        "hits_chart": chart,
        "visitors_chart": bar_chart(by_day) if by_day.keys() & counted.keys() else None,
        "rows": rows,
        "counts_visitors_twice": not all(n is None or n.is_distinct for n in numbers),
        "lacks_visitors": None in numbers,
        "corrections": corrections[:MOST_CORRECTIONS],
        "has_more_corrections": len(corrections) > MOST_CORRECTIONS,
        "was_ever_hit": any(row["total"] for row in rows if row["counter"] == selection.counter),
    }


def _count_rows(
    keys: Mapping[str, CounterKey], sums: Sums, visitors: VisitorsOfDays
) -> list[dict[str, Any]]:
    """
    Count what the rows of the table of counters show.

    The visitors of a range are None if there are hits, but no visitors were counted, as of imported
    hits. A counter that does not count them has none.
    """
    ranges = [last_days(days) for days in RANGES]
    options = conf.get_config().counters
    totals = read_numbers([*map(Number, keys.values())])
    of_key = {
        keys[name]: [Number(keys[name], *ends, True) for ends in ranges]
        for name in keys
        if options[name].visitors
    }
    counts = count_together(visitors, chain(*of_key.values()))
    rows = []
    for name, key in keys.items():
        hits = [sum(sums[name, day] for day in list_days(*ends)) for ends in ranges]
        known = [
            counts[of] if counts[of].spans or not number else None
            for of, number in zip(of_key.get(key, ()), hits, strict=False)
        ]
        row = {"counter": name, "label": label_counter(name), "total": totals[Number(key)]}
        rows.append({**row, "hits": hits, "visitors": known})
    return rows


def _read_corrections(key: CounterKey) -> list[Correction]:
    """Read the newest corrections of all counters of an object, and one more than is shown."""
    made = Correction.objects.using(hits_alias()).filter(
        content_type_id=key.content_type_id, object_id=key.object_id
    )
    return [*made.order_by("-made_at", "-pk")[: MOST_CORRECTIONS + 1]]


def days_csv(obj: Model, selection: Selection) -> Iterator[str]:
    """Write the hits of each chosen day, and the visitors if the counter counts them."""
    key, days = counter_key(obj, counter=selection.counter), selection.period.ends
    hits = hits_by_day(obj, first_day=days[0], last_day=days[1], counter=selection.counter)
    if not selection.counts_visitors:
        return write_csv([gettext("Day"), gettext("Hits")], hits.items())
    visitors = read_visitors_of_days([key], *days).by_day(key)
    return write_csv(
        [gettext("Day"), gettext("Hits"), gettext("Visitors")],
        [(day, number, visitors.get(day, None if number else 0)) for day, number in hits.items()],
    )


class FirstDays(NamedTuple):
    """The first days of an object."""

    label: str
    first_day: datetime.date | None
    """The first day with hits; None if there is none."""

    hits: Mapping[datetime.date, int]
    """The hits of each day from the first one on, in order, without today: it is not over."""

    def add_up(self, days: int) -> int | None:
        """Return the hits of the first ``days``; None if not so many have passed."""
        return sum(islice(self.hits.values(), days)) if days <= len(self.hits) else None


def compare(model_admin: Any, request: HttpRequest, obj: Model, counter: str) -> dict[str, Any]:
    """
    Return what the page says about an object beside another, if that is asked for.

    Costs twice what hits_by_day() costs for an object, and what _find_other() costs.
    """
    form = ComparisonForm(request.GET if "beside" in request.GET else None)
    found: dict[str, Any] = {"comparison_form": form}
    if form.is_valid():
        try:
            other = _find_other(model_admin, request, obj, counter, form.cleaned_data["beside"])
        except InvalidArgument as exc:
            form.add_error("beside", str(exc))
        else:
            found["comparison"] = _read_comparison(obj, other, counter)
            found["other"] = other
    return found


def _find_other(
    model_admin: Any, request: HttpRequest, obj: Model, counter: str, key: str
) -> Model:
    """
    Return the object with a primary key, or without a key the nearest before ``obj`` with hits.

    Raises InvalidArgument if there is none that the user may view.
    """
    may_view = partial(model_admin.has_view_or_change_permission, request)
    if not key:
        before: Sequence[Model] = model_admin.objects_before(request, obj)[:MOST_BEFORE]
        totals = get_hits(filter(may_view, before), counter=counter)
        for nearest, total in totals.items():
            if total > 0:
                return nearest
        raise InvalidArgument(
            gettext("No object before this one has hits. Enter the primary key of another one.")
        )
    try:
        other: Model | None = model_admin.get_object(request, key)
    except OverflowError:  # SQLite, of a key that fits no column.
        other = None
    if other is None or not may_view(other):
        text = gettext("There is no %(model)s with the primary key “%(key)s” that you may view.")
        raise InvalidArgument(text % {"model": model_admin.opts.verbose_name, "key": key})
    if other == obj:
        raise InvalidArgument(gettext("This is the same object. Enter the key of another one."))
    counter_key(other, counter=counter)  # Raises InvalidKey if it cannot be counted.
    return other


def _read_comparison(obj: Model, other: Model, counter: str) -> dict[str, Any]:
    own, beside = sides = [_read_first_days(each, counter) for each in (obj, other)]
    # Up to these days, both have had all of them, and one of the two.
    days, most = sorted(len(side.hits) for side in sides)
    rows = []
    for span in sorted({*SPANS, days}):
        if 0 < span <= most:
            hits, hits_beside = own.add_up(span), beside.add_up(span)
            difference = None if hits is None else change_of(hits, hits_beside)
            rows.append((span, hits, hits_beside, difference))
    return {
        "own": own,
        "other": beside,
        "days": days,
        "chart": bar_chart(*(dict(islice(side.hits.items(), days)) for side in sides)),
        "rows": rows,
        "without_days": [side for side in sides if not side.hits],
    }


def _read_first_days(obj: Model, counter: str) -> FirstDays:
    """Read the first days with hits in the longest range of days, which ends today."""
    first_day, today = last_days(LONGEST_RANGE_DAYS)
    hits = hits_by_day(obj, first_day=first_day, last_day=today, counter=counter)
    first = next((day for day, number in hits.items() if number > 0), None)
    whole = ((day, number) for day, number in hits.items() if first and first <= day < today)
    return FirstDays(label_object(obj), first, dict(islice(whole, MOST_DAYS)))
