"""
Read hits by day, week or month: of an object, a model, a queryset, or the whole site.

Also reads the visitors of an object by day.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from django.db.models import Manager, Model, QuerySet

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.batches import CounterDay
from django_hitcount.counters.days import list_days, need_range
from django_hitcount.counters.keys import CounterKey, check_counter, valid_visitor_counter
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.primary_keys import convert_key, counted_model, key_type
from django_hitcount.db import sums
from django_hitcount.db.counter_keys import content_type_id_of, counter_key
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.sums import DayRange, Sums
from django_hitcount.db.tables import hits_alias
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.numbers import read_visitors_of_days
from django_hitcount.twins import async_twin

__all__ = [
    "ahits_by_day",
    "ahits_by_month",
    "ahits_by_week",
    "avisitors_by_day",
    "hits_by_day",
    "hits_by_month",
    "hits_by_week",
    "visitors_by_day",
]

OBJECTS_AT_A_TIME = 5000
"""Objects of a queryset whose keys are read, so that their hits in the buffer are counted, too."""

Source = Model | type[Model] | QuerySet[Any, Any] | Manager[Any] | Iterable[Any] | None
"""What to add up the hits of; None: the whole site."""


def hits_by_day(
    source: Source,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[datetime.date, int]:
    """
    Return the hits of each calendar day of a range, in order. Days without hits have 0.

    Args:
        source: a saved object, a model, a queryset or a manager; a list of these, or another
            iterable, whose hits are added up; or None for the hits of the whole site.
        days: how many days, today included, up to 3,660. It or ``first_day`` is needed.
        first_day, last_day: in place of ``days``, two dates in TIME_ZONE, both included. The last
            day is today by default.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    The numbers are exact: they include the hits that wait in the buffer. But of a queryset with
    more than 5,000 objects in the database of the counts, they are those in the tables: with Redis,
    all hits up to the last flush.

    Raises InvalidArgument if an argument is invalid, and the database's error if it does not
    answer.

    For an object, costs a query, and with Redis one round trip. For a model and for the site, costs
    a query, and with Redis two round trips, but never adds up all objects. For a queryset with a
    filter, costs what an object costs, and a query of its primary keys. For several sources, costs
    what each of them costs.
    """
    check_counter(counter)
    ends = need_range(days, first_day, last_day)
    found = _read(source, DayRange(*ends), counter)
    return {day: found[counter, day] for day in list_days(*ends)}


def hits_by_week(
    source: Source,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[datetime.date, int]:
    """
    Return the hits of each week of a range, by the Monday that begins it, as in ISO 8601.

    The first and the last week have only the hits of those of their days that are in the range. For
    all else, see hits_by_day().
    """
    hits = hits_by_day(source, days=days, first_day=first_day, last_day=last_day, counter=counter)
    return _group(hits, lambda day: day - datetime.timedelta(days=day.weekday()))


def hits_by_month(
    source: Source,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[datetime.date, int]:
    """
    Return the hits of each month of a range, by the first day of the month.

    The first and the last month have only the hits of those of their days that are in the range.
    For all else, see hits_by_day().
    """
    hits = hits_by_day(source, days=days, first_day=first_day, last_day=last_day, counter=counter)
    return _group(hits, lambda day: day.replace(day=1))


def visitors_by_day(
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[datetime.date, int]:
    """
    Return how many different visitors an object had on each calendar day of a range, in order.

    The sum is not the number of different visitors of the range: for that, see get_visitors().

    Args:
        obj: a saved object of any model. Not a model, a queryset or the site: visitors are kept by
            object, so that nobody can follow them from one to the next.
        days, first_day, last_day: as for hits_by_day().
        counter: the name of a counter with the option ``visitors``.

    Raises InvalidArgument if an argument is invalid, or the counter does not count visitors.

    Costs a query, and with Redis one round trip.
    """
    ends = need_range(days, first_day, last_day)
    if not isinstance(obj, Model):
        raise UnsavedObject(
            f"Invalid object: {obj!r}. Visitors are kept by object: pass a saved one."
        )
    key = counter_key(obj, counter=valid_visitor_counter(counter))
    counts = read_visitors_of_days([key], *ends).by_day(key)
    return {day: counts.get(day, 0) for day in list_days(*ends)}


def _read(source: Any, days: DayRange, counter: str) -> Sums:
    """Read the hits of a source."""
    if isinstance(source, Manager):
        source = source.all()
    if source is None:
        return _read_model(None, days, counter)
    if isinstance(source, QuerySet):
        return _read_queryset(source, days, counter)
    if isinstance(source, type) and issubclass(source, Model) and not source._meta.abstract:
        return _read_queryset(QuerySet(source), days, counter)
    if isinstance(source, Model):
        return read_counters([counter_key(source, counter=counter)], days)
    if isinstance(source, Iterable) and not isinstance(source, type | str | bytes):
        return _add_up(_read(item, days, counter) for item in source)
    raise InvalidArgument(
        f"Invalid source: {source!r}. Pass a saved object, a model that is not abstract, a "
        "queryset, a list of these, or None for the whole site."
    )


def _add_up(parts: Iterable[Mapping[CounterDay, int]]) -> Sums:
    """Add up hits. The operator + would drop negative ones."""
    found: Sums = Counter()
    for part in parts:
        found.update(part)
    return found


def read_counters(keys: Collection[CounterKey], days: DayRange) -> Sums:
    """
    Read the hits of counters, by the name of the counter and the day.

    Costs a query, and with Redis one round trip.
    """
    wanted = [Number(key, days.first_day, days.last_day) for key in keys]
    held = get_buffer().read(wanted).held
    with savepoint(hits_alias()):
        found, applied = sums.read_days_of_counters(keys, days, held)
    for batch_id in held.keys() - applied:
        for (key, day), hits in held[batch_id].items():
            found[key.counter, day] += hits
    return found


def _read_model(content_type_id: int | None, days: DayRange, counter: str) -> Sums:
    """Read the hits of a model; None: of all models. See read_counters()."""
    held = get_buffer().read_days_of_model(content_type_id, days, counter=counter)
    with savepoint(hits_alias()):
        found, applied = sums.read_days_of_model(content_type_id, days, held, counter=counter)
    for batch_id in held.keys() - applied:
        found.update(held[batch_id])
    return found


def _read_queryset(queryset: QuerySet[Any, Any], days: DayRange, counter: str) -> Sums:
    """Read the hits of a model, or of those of its objects that a queryset has."""
    model: type[Model] = queryset.model
    key_type(model)  # Raises InvalidKey if its objects cannot be counted.
    query = queryset.query
    can_nest = not (query.is_sliced or query.combinator or query.distinct_fields)
    if can_nest:
        queryset = queryset.order_by()
        if not query.where and counted_model(model) is model._meta.concrete_model:
            # It has all objects that count as objects of this model.
            return _read_model(content_type_id_of(model), days, counter)
    pks = queryset.values_list("pk", flat=True)
    if can_nest and queryset.db == hits_alias():
        first_pks = [*pks[: OBJECTS_AT_A_TIME + 1]]
        if len(first_pks) > OBJECTS_AT_A_TIME:
            with savepoint(hits_alias()):  # The database finds so many itself.
                return sums.read_days_of_objects(queryset, days, counter=counter)
        return _read_pks(model, first_pks, days, counter)
    return _read_pks(model, pks.iterator(OBJECTS_AT_A_TIME), days, counter)


def _read_pks(model: type[Model], pks: Iterable[Any], days: DayRange, counter: str) -> Sums:
    """Read the hits of the objects with these primary keys. Costs a query per 5,000 of them."""
    content_type_id = content_type_id_of(model)
    keys = iter({CounterKey(content_type_id, convert_key(model, pk), counter) for pk in pks})
    chunks = iter(lambda: [*islice(keys, OBJECTS_AT_A_TIME)], [])
    return _add_up(read_counters(chunk, days) for chunk in chunks)


def _group(
    days: Mapping[datetime.date, int], first_of: Callable[[datetime.date], datetime.date]
) -> dict[datetime.date, int]:
    """Add up days by the first day of their week or month."""
    groups: Counter[datetime.date] = Counter()
    for day, hits in days.items():
        groups[first_of(day)] += hits
    return dict(groups)


ahits_by_day = async_twin(hits_by_day)
"""See hits_by_day()."""

ahits_by_week = async_twin(hits_by_week)
"""See hits_by_week()."""

ahits_by_month = async_twin(hits_by_month)
"""See hits_by_month()."""

avisitors_by_day = async_twin(visitors_by_day)
"""See visitors_by_day()."""
