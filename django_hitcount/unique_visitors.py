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
from typing import NamedTuple, TypeVar, overload

from django.db.models import Model

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import find_range, last_days
from django_hitcount.counters.keys import (
    CounterKey,
    CounterRange,
    DailyVisitorsKey,
    valid_visitor_counter,
)
from django_hitcount.counters.visitors import DayInTable, MergedDays, Visitors
from django_hitcount.db import daily_visitors
from django_hitcount.db.counter_keys import keys_by_object
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.outages.breaker import Guard
from django_hitcount.twins import async_twin

__all__ = [
    "Visitors",
    "aget_visitors",
    "get_visitors",
]

ModelT = TypeVar("ModelT", bound=Model)


@overload
def get_visitors(
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> Visitors: ...


@overload
def get_visitors(
    obj: Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]: ...


def get_visitors(
    obj: Model | Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> Visitors | dict[ModelT, Visitors]:
    """
    Return how many different visitors an object had, or each object of a list, by object.

    Without days, returns the visitors of today. The arguments are those of get_hits(), and
    ``counter`` needs the option ``visitors``.

    Raises InvalidArgument if an argument is invalid, or the counter does not count visitors.

    Costs a query, and with Redis one round trip, for one object and for many. If days are counted
    together (only if VISITOR_KEY_ROTATION is "month" or "never"), costs one more round trip. Each
    of these days sends up to 12 KB, and one round trip sends up to 100 days.
    """
    ends = find_range(days, first_day, last_day) or last_days(1)
    keys = keys_by_object(obj, counter=valid_visitor_counter(counter))
    ranges = {of: CounterRange(key, *ends) for of, key in keys.items()}
    found = get_visitors_of_ranges(ranges.values())
    counts = {of: found[wanted] for of, wanted in ranges.items()}
    return counts[obj] if isinstance(obj, Model) else counts


def get_visitors_of_ranges(
    ranges: Collection[CounterRange], *, guard: Guard = nullcontext
) -> dict[CounterRange, Visitors]:
    """
    Return the visitors of ranges of days. Reads the tables within ``guard``.

    Costs what get_visitors() costs, once for all ranges. Reads the days from the first of any
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


aget_visitors = async_twin(get_visitors)
"""See get_visitors()."""
