"""Compare the hits of two objects, each counted from its own first day on."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext

from django_hitcount.counters.days import LONGEST_RANGE_DAYS, last_days
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.reports.charts import bar_chart
from django_hitcount.reports.labels import label_object
from django_hitcount.reports.rows import change_of
from django_hitcount.series import hits_by_day
from django_hitcount.totals import get_hits

MOST_DAYS = 90
"""Days of the chart. A bar is a day, which has a number: of more days, it would be a week."""

SPANS = (1, 7, 30, MOST_DAYS)
"""The first so many days, in the table."""

MOST_BEFORE = 20
"""Objects before this one among which the nearest with hits is looked for."""


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


def find_other(model_admin: Any, request: HttpRequest, obj: Model, counter: str, key: str) -> Model:
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


def read_comparison(obj: Model, other: Model, *, counter: str) -> dict[str, Any]:
    """
    Read the first days of two objects, for the template.

    Costs twice what hits_by_day() costs for an object.
    """
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
