"""Read how many different visitors counters had."""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from itertools import chain
from typing import Self, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of, valid_days
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey
from django_hitcount.counters.sketches import SketchUnion
from django_hitcount.db import daily_visitors
from django_hitcount.db.counted_objects import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable, VisitorsNotCounted
from django_hitcount.outages.page_reads import Guard, page_read_breaker

logger = logging.getLogger("django_hitcount")

ModelT = TypeVar("ModelT", bound=Model)

Span = tuple[CounterKey, str]
"""A counter, and the id of the visitor key of some of its days."""


class Visitors(int):
    """
    How many visitors a counter had in a range of days: a number that knows more.

    Counts of Redis are estimates by HyperLogLog, with a standard error of 0.81 %; without
    Redis, the visitors of a day are counted one by one.
    """

    spans: int
    """
    Stretches of days within which a visitor of several days is counted once.

    Where the visitor key has rotated, and without Redis each night, visitors from before
    and after cannot be compared: one who came in two spans is counted twice.
    """

    def __new__(cls, count: int, spans: int) -> Self:
        visitors = super().__new__(cls, count)
        visitors.spans = spans
        return visitors

    @property
    def is_distinct(self) -> bool:
        """Is each visitor counted once, as all days are in one span?"""
        return self.spans <= 1

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]
        return int(self), self.spans

    def __repr__(self) -> str:
        return f"Visitors({int(self)}, spans={self.spans})"

    __str__ = int.__repr__


NOBODY = Visitors(0, 0)


def visitors_on(obj: Model, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
    """
    How many different visitors ``obj`` had on a calendar day, in TIME_ZONE.

    Costs what visitors_between() costs.

    Raises VisitorsNotCounted if the counter does not count them, InvalidDay if ``day`` is no
    date, and InvalidHit as record_hit() does.
    """
    return int(visitors_between(obj, day, day, counter=counter))


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
    that rotates by "month" or "never" allows, one more of each; up to 12 KB a day travel,
    100 days in one round trip.

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

    Costs what visitors_between() costs, once for all objects.
    """
    return _visitors_by_object(objs, first_day, last_day, counter, nullcontext)


def _visitors_by_object(
    objs: Iterable[ModelT],
    first_day: datetime.date | None,
    last_day: datetime.date | None,
    counter: str,
    guard: Guard,
) -> dict[ModelT, Visitors]:
    """As get_visitors(), reading the tables within a guard."""
    last_day = last_day or day_of()
    keys = {obj: counter_key(obj, counting_visitors(counter)) for obj in objs}
    found = get_visitors_of(keys.values(), first_day or last_day, last_day, guard=guard)
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
    keys: Collection[CounterKey],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    guard: Guard = nullcontext,
) -> dict[CounterKey, Visitors]:
    """The visitors of ``keys``; see get_visitors(). Reads the tables within ``guard``."""
    valid_days(first_day, last_day)
    using = hits_alias()
    live = get_buffer().visitors(keys, first_day, last_day)
    with guard(), savepoint(using):
        known = daily_visitors.counts(keys, first_day, last_day, using=using)
    spans: dict[Span, list[DailyVisitorsKey]] = defaultdict(list)
    for day in sorted({*live, *known}):
        spans[day.key, day.key_id].append(day)
    merged = _merged({span: days for span, days in spans.items() if len(days) > 1}, live, guard)
    found = dict.fromkeys(keys, NOBODY)
    for span, days in spans.items():
        key, _ = span
        if span in merged:
            count, more = merged[span], 1
        else:
            # What Redis knows of a day is what the table knows and more, unless it lost it.
            count, more = sum(max(live.get(d, 0), known.get(d, 0)) for d in days), len(days)
        found[key] = Visitors(found[key] + count, found[key].spans + more)
    return found


def _merged(
    spans: Mapping[Span, Collection[DailyVisitorsKey]],
    live: Mapping[DailyVisitorsKey, int],
    guard: Guard,
) -> dict[Span, int]:
    """The visitors of several days under one key, where they can be compared."""
    using, buffer = hits_alias(), get_buffer()
    if not spans or not buffer.keeps_hits:
        return {}
    with guard(), savepoint(using):
        known = daily_visitors.sketches([*chain.from_iterable(spans.values())], using=using)
    unions = {
        span: SketchUnion(
            span[0], live.keys() & set(days), [known[day] for day in days if day in known]
        )
        for span, days in spans.items()
        if all(day in live or day in known for day in days)  # Not counted one by one.
    }
    counts = buffer.unions([*unions.values()])
    return dict(zip(unions, counts, strict=False))


def visitors_or_none(
    objs: Iterable[ModelT],
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]:
    """
    As get_visitors(), but empty if the database does not answer.

    For pages: while the database is left alone, it is not asked.
    """
    try:
        return _visitors_by_object(objs, first_day, last_day, counter, page_read_breaker().guard)
    except BufferUnavailable:
        return {}  # The breaker has said so.
    except DATABASE_ERRORS as exc:
        logger.error("Visitors cannot be read: %s", exc)
        return {}


avisitors_on = sync_to_async(visitors_on)
"""See visitors_on()."""

avisitors_between = sync_to_async(visitors_between)
"""See visitors_between()."""

aget_visitors = sync_to_async(get_visitors)
"""See get_visitors()."""
