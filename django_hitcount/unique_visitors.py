"""
Read how many different visitors objects had.

Redis has the visitors of each day, and the tables have those up to the last flush. Days whose
visitors were hashed under the same key are a span: their visitors can be compared, and are counted
together. The numbers of different spans are added up.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from itertools import chain
from typing import NamedTuple, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of, list_days
from django_hitcount.counters.keys import (
    CounterKey,
    CounterRange,
    DailyVisitorsKey,
    check_counter,
)
from django_hitcount.counters.visitors import DayInTable, MergedDays, Visitors
from django_hitcount.db import daily_visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.exceptions import VisitorsNotCounted
from django_hitcount.outages.breaker import Guard

__all__ = [
    "Visitors",
    "aget_visitors",
    "avisitors_between",
    "avisitors_on",
    "get_visitors",
    "visitors_between",
    "visitors_on",
]

ModelT = TypeVar("ModelT", bound=Model)


def visitors_on(obj: Model, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
    """
    Return how many different visitors ``obj`` had on one calendar day.

    Args:
        obj: a saved object of any model.
        day: a date, in TIME_ZONE.
        counter: the name of a counter with the option ``visitors``.

    Raises VisitorsNotCounted if the counter does not count visitors, InvalidDay if ``day`` is
    not a date, and InvalidHit if another argument is invalid.

    Costs what visitors_between() costs.
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
    Return how many different visitors ``obj`` had from one calendar day to another, both included.

    Args:
        obj: a saved object of any model.
        first_day: a date, in TIME_ZONE.
        last_day: a date that is not earlier, up to 3,660 days in all.
        counter: the name of a counter with the option ``visitors``.

    Raises VisitorsNotCounted if the counter does not count visitors, InvalidDay if the days
    are invalid, and InvalidHit if another argument is invalid.

    Costs a query, and with Redis one round trip. If days are counted together (only if
    VISITOR_KEY_ROTATION is "month" or "never"), costs one more round trip. Each of these days sends
    up to 12 KB, and one round trip sends up to 100 days.
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
    Return how many different visitors each of ``objs`` had, by object.

    Without days, returns the visitors of today. For the other arguments and the errors, see
    visitors_between(). Costs what visitors_between() costs, once for all objects.
    """
    last_day = last_day or day_of()
    keys = {obj: counter_key(obj, counter=valid_visitor_counter(counter)) for obj in objs}
    days = first_day or last_day, last_day
    list_days(*days)
    ranges = {obj: CounterRange(key, *days) for obj, key in keys.items()}
    found = get_visitors_of_ranges(ranges.values())
    return {obj: found[of] for obj, of in ranges.items()}


def valid_visitor_counter(counter: str) -> str:
    """Return ``counter``; raise UnknownCounter or VisitorsNotCounted if it counts no visitors."""
    if not conf.get_config().counters[check_counter(counter)].visitors:
        raise VisitorsNotCounted(
            f"The counter {counter!r} does not count visitors. Turn that on in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{counter!r}: {{"visitors": True}}}}}}.'
        )
    return counter


def get_visitors_of_ranges(
    ranges: Collection[CounterRange], *, guard: Guard = nullcontext
) -> dict[CounterRange, Visitors]:
    """
    Return the visitors of ranges of days. Reads the tables within ``guard``.

    Costs what visitors_between() costs, once for all ranges. Reads the days from the first of any
    range to the last, of all counters.
    """
    if not ranges:
        return {}
    first_day = min(of.first_day for of in ranges)
    last_day = max(of.last_day for of in ranges)
    sketches_from = first_day if first_day < last_day else None
    keys = {of.key for of in ranges}
    days = read_visitors_of_days(
        keys, first_day, last_day, sketches_from=sketches_from, guard=guard
    )
    return days.of_ranges(ranges)


class VisitorsOfDays(NamedTuple):
    """The visitors of counters on some days. A day may be there once for each visitor key."""

    in_buffer: Mapping[DailyVisitorsKey, int]
    in_tables: Mapping[DailyVisitorsKey, DayInTable]

    def on(self, day: DailyVisitorsKey) -> int:
        """Return the visitors of one day."""
        # Redis has all visitors that the table has, and newer ones, unless it lost a sketch.
        return max(self.in_buffer.get(day, 0), self.in_tables.get(day, DayInTable()).visitors)

    def by_day(self, key: CounterKey) -> dict[datetime.date, int]:
        """Return the visitors of a counter on each day on which any were counted."""
        counts: dict[datetime.date, int] = Counter()
        for day in {*self.in_buffer, *self.in_tables}:
            if day.key == key:
                counts[day.day] += self.on(day)
        return counts

    def of_ranges(self, ranges: Iterable[CounterRange]) -> dict[CounterRange, Visitors]:
        """
        Count the different visitors of ranges of these days.

        Costs a round trip for each hundred sketches of days that are counted together.
        """
        days_of: dict[CounterKey, list[DailyVisitorsKey]] = defaultdict(list)
        for day in {*self.in_buffer, *self.in_tables}:
            days_of[day.key].append(day)
        spans_of = {of: self._find_spans(days_of[of.key], of) for of in ranges}
        merges = [*filter(self._can_merge, chain.from_iterable(spans_of.values()))]
        merged = iter(get_buffer().count_merged(merges) if merges else ())
        found = {}
        for of, spans in spans_of.items():
            counts: list[int] = []
            for span in spans:
                together = next(merged) if self._can_merge(span) else None
                counts += map(self.on, span) if together is None else [together]
            found[of] = Visitors(sum(counts), len(counts))
        return found

    def _find_spans(self, days: Iterable[DailyVisitorsKey], of: CounterRange) -> list[MergedDays]:
        """Return the spans of those days that are in a range, with the sketches of the table."""
        spans: dict[str, dict[DailyVisitorsKey, bytes | None]] = defaultdict(dict)
        for day in days:
            if of.first_day <= day.day <= of.last_day:
                spans[day.key_id][day] = self.in_tables.get(day, DayInTable()).sketch
        return [*spans.values()]

    def _can_merge(self, span: MergedDays) -> bool:
        """Whether a span has several days, and all have sketches: not so without Redis."""
        return len(span) > 1 and all(span[day] or day in self.in_buffer for day in span)


def read_visitors_of_days(
    keys: Collection[CounterKey],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    sketches_from: datetime.date | None = None,
    guard: Guard = nullcontext,
) -> VisitorsOfDays:
    """
    Read the visitors of counters on each day. Read the tables within ``guard``.

    Days from ``sketches_from`` can be counted together: their sketches have up to 12 KB. Costs a
    query, and with Redis one round trip.
    """
    using = hits_alias()
    in_buffer = get_buffer().count_visitors(keys, first_day, last_day)
    with guard(), savepoint(using):
        in_tables = daily_visitors.read_days(
            keys, first_day, last_day, sketches_from=sketches_from, using=using
        )
    return VisitorsOfDays(in_buffer, in_tables)


avisitors_on = sync_to_async(visitors_on)
"""See visitors_on()."""

avisitors_between = sync_to_async(visitors_between)
"""See visitors_between()."""

aget_visitors = sync_to_async(get_visitors)
"""See get_visitors()."""
