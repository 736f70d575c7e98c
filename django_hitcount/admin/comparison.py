"""Compare the hits of two objects, each counted from its own first day on."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy

from django_hitcount.counters.days import LONGEST_RANGE_DAYS, last_days
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidHit
from django_hitcount.reports.charts import BarChart, bar_chart
from django_hitcount.reports.labels import label_object
from django_hitcount.reports.rows import change_of
from django_hitcount.series import hits_by_day
from django_hitcount.totals import get_totals

MOST_DAYS = 90
"""Days of the chart. A bar is a day, which has a number: of more days, it would be a week."""

SPANS = (1, 7, 30, MOST_DAYS)
"""The first so many days, in the table."""

MOST_BEFORE = 20
"""Objects before this one among which the nearest with hits is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstDays:
    """The first days of an object."""

    obj: Model
    label: str
    first_day: datetime.date | None
    """The first day with hits; None if there is none."""

    hits: Mapping[datetime.date, int]
    """The hits of each day from the first one on, in order, without today: it is not over."""

    def add_up(self, days: int) -> int | None:
        """Return the hits of the first ``days``; None if not so many have passed."""
        return sum(islice(self.hits.values(), days)) if days <= len(self.hits) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedDays:
    """The hits of the first days of two objects."""

    days: int
    own: int | None
    other: int | None

    @property
    def difference(self) -> float | None:
        """How many percent more hits than the other; None if there is nothing to compare with."""
        return None if self.own is None else change_of(self.own, self.other)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The first days of an object beside those of another."""

    own: FirstDays
    other: FirstDays

    @property
    def days(self) -> int:
        """How many days both have had, up to those of the chart."""
        return min(len(self.own.hits), len(self.other.hits))

    @property
    def chart(self) -> BarChart:
        hits, beside = (
            dict(islice(side.hits.items(), self.days)) for side in (self.own, self.other)
        )
        return bar_chart(hits, beside)

    @property
    def rows(self) -> Sequence[ComparedDays]:
        """Rows of which at least one of the two has had all days."""
        most = max(len(self.own.hits), len(self.other.hits))
        return [
            ComparedDays(days=days, own=self.own.add_up(days), other=self.other.add_up(days))
            for days in sorted({*SPANS, self.days})
            if 0 < days <= most
        ]

    @property
    def without_days(self) -> Sequence[FirstDays]:
        """Those of the two that cannot be compared yet."""
        return [side for side in (self.own, self.other) if not side.hits]


class ComparisonForm(forms.Form):
    """Asks for the object to compare with. Its value is that object."""

    beside = forms.CharField(
        label=gettext_lazy("Compare with"),
        required=False,
        widget=forms.TextInput(attrs={"size": 12, "aria-describedby": "hitcount-beside-help"}),
    )

    def __init__(self, *args: Any, find: Callable[[str], Model], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._find = find

    def clean_beside(self) -> Model:
        try:
            return self._find(self.cleaned_data["beside"])
        except InvalidHit as exc:
            raise ValidationError(str(exc)) from exc


def find_other(
    model_admin: ModelAdmin[Any],
    objects_before: Callable[[HttpRequest, Any], QuerySet[Any, Any]],
    request: HttpRequest,
    obj: Model,
    counter: str,
    key: str,
) -> Model:
    """
    Return the object with a primary key, or without a key the nearest before ``obj`` with hits.

    Raises ValidationError if there is none that the user may view.
    """
    if not key:
        may_view = partial(model_admin.has_view_or_change_permission, request)
        return _find_first(filter(may_view, objects_before(request, obj)[:MOST_BEFORE]), counter)
    try:
        other: Model | None = model_admin.get_object(request, key)
    except OverflowError:  # SQLite, of a key that fits no column.
        other = None
    if other is None or not model_admin.has_view_or_change_permission(request, other):
        text = gettext("There is no %(model)s with the primary key “%(key)s” that you may view.")
        named = {"model": model_admin.opts.verbose_name, "key": key}
        raise ValidationError(text % named)
    if other == obj:
        raise ValidationError(gettext("This is the same object. Enter the key of another one."))
    counter_key(other, counter=counter)  # Raises InvalidKey if it cannot be counted.
    return other


def _find_first(before: Iterable[Model], counter: str) -> Model:
    """Return the first object with hits. Raises ValidationError."""
    totals = get_totals(before, counter=counter)
    other = next((obj for obj, total in totals.items() if total > 0), None)
    if other is None:
        text = gettext("No object before this one has hits. Enter the primary key of another one.")
        raise ValidationError(text)
    return other


def read_comparison(obj: Model, other: Model, *, counter: str) -> Comparison:
    """Read the first days of two objects. Costs twice what hits_by_day() costs for an object."""
    own, beside = (_read_first_days(each, counter) for each in (obj, other))
    return Comparison(own=own, other=beside)


def _read_first_days(obj: Model, counter: str) -> FirstDays:
    """Read the first days with hits in the longest range of days, which ends today."""
    first_day, today = last_days(LONGEST_RANGE_DAYS)
    hits = hits_by_day(obj, first_day, today, counter=counter)
    first = next((day for day, number in hits.items() if number > 0), None)
    whole = ((day, number) for day, number in hits.items() if first and first <= day < today)
    return FirstDays(
        obj=obj, label=label_object(obj), first_day=first, hits=dict(islice(whole, MOST_DAYS))
    )
