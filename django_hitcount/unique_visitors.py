"""Read how many different visitors counters had."""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount import conf, daily_visitors
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters import (
    CounterKey,
    VisitorsKey,
    counter_key,
    day_of,
    hits_alias,
    valid_days,
)
from django_hitcount.exceptions import VisitorsNotCounted
from django_hitcount.transactions import DATABASE_ERRORS, savepoint

logger = logging.getLogger("django_hitcount")

ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True, slots=True)
class Visitors:
    """
    How many visitors a counter had in a range of days.

    Counts of Redis are estimates by HyperLogLog, with a standard error of 0.81 %; without
    Redis, the visitors of a day are counted one by one.
    """

    count: int

    spans: int
    """
    Stretches of days within which a visitor of several days is counted once.

    Where the visitor key has rotated, and without Redis each night, visitors from before
    and after cannot be compared: one who came in two spans is counted twice.
    """

    @property
    def is_distinct(self) -> bool:
        """Is each visitor counted once, as all days are in one span?"""
        return self.spans <= 1

    def __int__(self) -> int:
        return self.count

    __index__ = __int__  # For the filter ``pluralize``.

    def __str__(self) -> str:
        return str(self.count)


NOBODY = Visitors(0, 0)


def visitors_on(obj: Model, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
    """
    How many different visitors ``obj`` had on a calendar day, in TIME_ZONE.

    Costs what visitors_between() costs.

    Raises VisitorsNotCounted if the counter does not count them, InvalidDay if ``day`` is no
    date, and InvalidHit as record_hit() does.
    """
    return visitors_between(obj, day, day, counter=counter).count


def visitors_between(
    obj: Model,
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    counter: str = DEFAULT_COUNTER,
) -> Visitors:
    """
    How many different visitors ``obj`` had from one day to another, both included.

    Costs a query, and with Redis one round trip. Where days are merged, which only a key
    that rotates by "month" or "never" allows, one more of each; up to 12 KB a day travel.

    Raises VisitorsNotCounted if the counter does not count them, InvalidDay if the days are
    no dates, in the wrong order or too far apart, and InvalidHit as record_hit() does.
    """
    return get_visitors([obj], first_day, last_day, counter=counter)[obj]


def get_visitors(
    objs: Iterable[ModelT],
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]:
    """
    The visitors of many objects, by object; those of today, if no days are given.

    Costs a query, and with Redis one round trip, for all objects of a day; see
    visitors_between() for ranges.
    """
    last_day = last_day or day_of()
    keys = {obj: counter_key(obj, counting_visitors(counter)) for obj in objs}
    found = get_visitors_of(keys.values(), first_day or last_day, last_day)
    return {obj: found[key] for obj, key in keys.items()}


def counting_visitors(counter: str) -> str:
    """``counter`` itself; raises VisitorsNotCounted if it is known to count none."""
    options = conf.get_config().counters.get(counter)
    if options and not options.visitors:
        raise VisitorsNotCounted(
            f"The counter {counter!r} does not count visitors. Let it, in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{counter!r}: {{"visitors": True}}}}}}.'
        )
    return counter


def get_visitors_of(
    keys: Collection[CounterKey], first_day: datetime.date, last_day: datetime.date
) -> dict[CounterKey, Visitors]:
    """The visitors of ``keys``; see get_visitors()."""
    valid_days(first_day, last_day)
    using, buffer = hits_alias(), get_buffer()
    live = buffer.visitors(keys, first_day, last_day)
    with savepoint(using):
        known = daily_visitors.counts(keys, first_day, last_day, using=using)
    spans: dict[CounterKey, dict[str, list[VisitorsKey]]] = defaultdict(lambda: defaultdict(list))
    for day in sorted({*live, *known}):
        spans[day.key][day.key_id].append(day)
    return {key: _sum(key, spans[key].values(), live, known) for key in keys}


def _sum(
    key: CounterKey,
    spans: Iterable[list[VisitorsKey]],
    live: Mapping[VisitorsKey, int],
    known: Mapping[VisitorsKey, int],
) -> Visitors:
    """The visitors of several spans, those within each merged if that is possible."""
    total = NOBODY
    for days in spans:
        # What Redis knows of a day is what the table knows and more, unless it lost it.
        counts = [max(live.get(day, 0), known.get(day, 0)) for day in days]
        merged = _merged(key, days, live) if len(days) > 1 else None
        if merged is None:
            total = Visitors(total.count + sum(counts), total.spans + len(days))
        else:
            total = Visitors(total.count + merged, total.spans + 1)
    return total


def _merged(
    key: CounterKey, days: Collection[VisitorsKey], live: Mapping[VisitorsKey, int]
) -> int | None:
    """The visitors of several days under one key; None if they cannot be compared."""
    using = hits_alias()
    with savepoint(using):
        sketches = daily_visitors.sketches(days, using=using)
    in_redis = [day for day in days if day in live]
    if len({*sketches, *in_redis}) < len(days):
        return None  # Visitors of one of the days were counted one by one.
    return get_buffer().union(key, in_redis, sketches.values())


def visitors_or_none(
    objs: Iterable[ModelT],
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]:
    """As get_visitors(), but empty if the database does not answer: for pages."""
    try:
        return get_visitors(objs, first_day, last_day, counter=counter)
    except DATABASE_ERRORS as exc:
        logger.error("Visitors cannot be read: %s", exc)
        return {}


avisitors_on = sync_to_async(visitors_on)
"""See visitors_on()."""

avisitors_between = sync_to_async(visitors_between)
"""See visitors_between()."""

aget_visitors = sync_to_async(get_visitors)
"""See get_visitors()."""
