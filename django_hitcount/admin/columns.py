"""The column of hits in a list of objects: exact totals, and a line of the last 30 days."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from typing import Any

from django.db import models, router
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import last_days, list_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.expressions import HitsInTables
from django_hitcount.db.sums import DayRange, read_days_of_each
from django_hitcount.db.tables import HitSlot
from django_hitcount.db.total_columns import HitCountField, total_columns
from django_hitcount.numbers import errors_logged, read_numbers, reading_tables
from django_hitcount.reports import label_counter
from django_hitcount.reports.charts import Sparkline, sparkline

DAYS = 30
"""Days of the line, today included."""

_ON_STATE = "hitcount_cell"
"""The attribute of ``obj._state`` with a cell. Not of a ModelAdmin: requests share that."""


class HitsColumn:
    """The column of a ModelAdmin, with the attributes that Django's ``display()`` sets."""

    __name__ = "hits_column"

    def __init__(self, model: type[models.Model], counter: str) -> None:
        self._model = model
        self._counter = counter

    @property
    def short_description(self) -> str:
        is_default = self._counter == DEFAULT_COUNTER
        return gettext("Hits") if is_default else label_counter(self._counter)

    @property
    def admin_order_field(self) -> str | HitsInTables | None:
        """
        What to order by: a HitCountField of the model, or the total in the tables.

        None if there is no such field and the counts are in another database: SQL cannot order by
        them there.
        """
        for field in self._model._meta.concrete_fields:
            is_total = isinstance(field, HitCountField) and field.counter == self._counter
            if is_total and field.model in total_columns():
                return field.name
        homes = {router.db_for_read(HitSlot), router.db_for_write(HitSlot)}
        if router.db_for_read(self._model) not in homes:
            return None
        return HitsInTables(self._model, counter=self._counter)

    def __call__(self, obj: models.Model) -> SafeString:
        if not hasattr(obj._state, _ON_STATE):
            fill_cells([obj], counter=self._counter, urls={})
        cell: SafeString = getattr(obj._state, _ON_STATE)
        return cell


def fill_cells(
    objs: Collection[models.Model], *, counter: str, urls: Mapping[models.Model, str]
) -> None:
    """
    Read what the column shows of ``objs``, and keep it on them. ``urls`` are those of statistics.

    Costs what get_hits() costs, and a query. If a server does not answer, the column is empty.
    """
    keys: dict[models.Model, CounterKey] = {}
    with errors_logged("Totals cannot be read"):
        keys = {obj: counter_key(obj, counter=counter) for obj in objs}
    totals = read_numbers([*map(Number, keys.values())], on_page=True)
    lines = _read_lines({*keys.values()})
    for obj in objs:
        cell: dict[str, Any] = {"url": urls.get(obj)}
        if key := keys.get(obj):
            cell |= {"total": totals.get(Number(key)), "line": lines.get(key)}
        html = render_to_string("admin/django_hitcount/hits_cell.html", cell)
        setattr(obj._state, _ON_STATE, html)


def _read_lines(keys: Collection[CounterKey]) -> dict[CounterKey, Sparkline]:
    """Read the lines of counters that have hits in the tables; none if the database is away."""
    days = DayRange(*last_days(DAYS))
    found: dict[CounterKey, dict[datetime.date, int]] = {}
    with errors_logged("Hits by day cannot be read"), reading_tables(on_page=True):
        found = read_days_of_each(keys, days)
    all_days = list_days(days.first_day, days.last_day)
    return {
        key: sparkline({day: by_day.get(day, 0) for day in all_days})
        for key, by_day in found.items()
    }
