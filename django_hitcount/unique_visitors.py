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
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, check_counter
from django_hitcount.counters.sketches import SketchUnion
from django_hitcount.counters.visitors import Visitors
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

Range = tuple[CounterKey, datetime.date, datetime.date]
"""A counter, and the first and the last of some days."""

RangeT = TypeVar("RangeT", bound=Range)

Span = tuple[DailyVisitorsKey, ...]
"""Days of a counter whose visitors were hashed under the same key, in order."""


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
    found = get_visitors_of_ranges([(key, *days) for key in keys.values()])
    return {obj: found[key, *days] for obj, key in keys.items()}


def valid_visitor_counter(counter: str) -> str:
    """Return ``counter``; raise UnknownCounter or VisitorsNotCounted if it counts no visitors."""
    if not conf.get_config().counters[check_counter(counter)].visitors:
        raise VisitorsNotCounted(
            f"The counter {counter!r} does not count visitors. Turn that on in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{counter!r}: {{"visitors": True}}}}}}.'
        )
    return counter


def get_visitors_of_ranges(
    ranges: Collection[RangeT], *, guard: Guard = nullcontext
) -> dict[RangeT, Visitors]:
    """
    Return the visitors of ranges of days. Reads the tables within ``guard``.

    Costs what visitors_between() costs, once for all ranges. Reads the days from the first of any
    range to the last, of all counters.
    """
    if not ranges:
        return {}
    keys = {key for key, _, _ in ranges}
    first_day = min(first_day for _, first_day, _ in ranges)
    last_day = max(last_day for _, _, last_day in ranges)
    sketches_from = first_day if first_day < last_day else None
    of_days = read_visitors_of_days(
        keys, first_day, last_day, sketches_from=sketches_from, guard=guard
    )
    return count_ranges(of_days, ranges)


class VisitorsOfDays(NamedTuple):
    """The visitors of counters on some days. A day may be there once for each visitor key."""

    visitors: Mapping[DailyVisitorsKey, int]
    in_buffer: set[DailyVisitorsKey]
    sketches: Mapping[DailyVisitorsKey, bytes]
    """Those in the tables, of days that may be merged with others."""

    def by_day(self, key: CounterKey) -> dict[datetime.date, int]:
        """Return the visitors of a counter on each day on which any were counted."""
        counts: dict[datetime.date, int] = Counter()
        for day, count in self.visitors.items():
            if day.key == key:
                counts[day.day] += count
        return counts


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
    using, buffer = hits_alias(), get_buffer()
    in_buffer = buffer.count_visitors(keys, first_day, last_day)
    with guard(), savepoint(using):
        in_tables, sketches = daily_visitors.read_counts(
            keys,
            first_day,
            last_day,
            sketches_from=sketches_from if buffer.merges_sketches else None,
            using=using,
        )
    # Redis has all visitors that the table has, and newer ones, unless it lost a sketch.
    visitors = {
        day: max(in_buffer.get(day, 0), in_tables.get(day, 0)) for day in {*in_buffer, *in_tables}
    }
    return VisitorsOfDays(visitors, {*in_buffer}, sketches)


def count_ranges(of_days: VisitorsOfDays, ranges: Collection[RangeT]) -> dict[RangeT, Visitors]:
    """
    Count the different visitors of ranges whose days were read.

    Costs a round trip for each hundred sketches of days that are counted together.
    """
    days_of: dict[CounterKey, list[DailyVisitorsKey]] = defaultdict(list)
    for day in sorted(of_days.visitors):
        days_of[day.key].append(day)
    spans_of = {wanted: _group_spans(days_of[wanted[0]], wanted) for wanted in ranges}
    merged = _count_merged_days(chain.from_iterable(spans_of.values()), of_days)
    found = {}
    for wanted, spans in spans_of.items():
        counts: list[int] = []
        for span in spans:
            alone = [of_days.visitors[day] for day in span]
            counts += [merged[span]] if span in merged else alone
        found[wanted] = Visitors(sum(counts), len(counts))
    return found


def _group_spans(days: Iterable[DailyVisitorsKey], wanted: Range) -> list[Span]:
    """Return the spans of the days of a range, in order."""
    _, first_day, last_day = wanted
    spans: dict[str, list[DailyVisitorsKey]] = defaultdict(list)
    for day in days:
        if first_day <= day.day <= last_day:
            spans[day.key_id].append(day)
    return [tuple(span) for span in spans.values()]


def _count_merged_days(spans: Iterable[Span], of_days: VisitorsOfDays) -> dict[Span, int]:
    """
    Count the different visitors of each span of several days.

    Leaves out spans that cannot be counted together. See count_ranges() for what the others cost.
    """
    buffer = get_buffer()
    if not buffer.merges_sketches:
        return {}
    unions = {
        span: SketchUnion(
            span[0].key,
            of_days.in_buffer.intersection(span),
            [of_days.sketches[day] for day in span if day in of_days.sketches],
        )
        for span in spans
        # On a day without a sketch, visitors were counted one by one.
        if len(span) > 1
        and all(day in of_days.in_buffer or day in of_days.sketches for day in span)
    }
    counts = buffer.count_unions([*unions.values()]) if unions else None
    return {} if counts is None else dict(zip(unions, counts, strict=True))


avisitors_on = sync_to_async(visitors_on)
"""See visitors_on()."""

avisitors_between = sync_to_async(visitors_between)
"""See visitors_between()."""

aget_visitors = sync_to_async(get_visitors)
"""See get_visitors()."""
