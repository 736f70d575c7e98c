"""
The numbers that a page shows: totals, and the visitors of the last days.

They are read together. A page does not fail because of them: it leaves out what cannot be read now.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount import series
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.grouping import split
from django_hitcount.counters.days import day_of
from django_hitcount.counters.keys import CounterKey, CounterRange, valid_visitor_counter
from django_hitcount.counters.numbers import (
    BufferNumbers,
    HitsOf,
    Number,
    UnkeptRange,
    Wanted,
    numbers_of,
)
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db import daily_visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import open_transactions, run_after_commit, savepoint
from django_hitcount.db.transactions import DATABASE_ERRORS, is_in_transaction
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.breaker import page_read_breaker
from django_hitcount.page_memory import Wish, add_wish, memory_of
from django_hitcount.totals import totals_or_none
from django_hitcount.unique_visitors import get_visitors_of_ranges

logger = logging.getLogger("django_hitcount")

TOTALS_AT_A_TIME = 2000
RANGES_AT_A_TIME = 500
"""Totals, and ranges of visitors, that are read in one round trip. They take Redis some 10 ms."""

FoundNumbers = Mapping[Number, Any]
"""Totals are of the type int, and visitors of the type Visitors."""


@contextmanager
def _errors_logged(failure: str) -> Iterator[None]:
    """Suppress errors of the database and of Redis, so that a page does not fail."""
    try:
        yield
    except BufferUnavailable:
        pass  # The breaker has logged it.
    except DATABASE_ERRORS as exc:
        logger.error("%s: %s", failure, exc)


def read_totals(
    keys: Sequence[CounterKey], request: HttpRequest | None, wanted: Wanted | None
) -> Mapping[CounterKey, int]:
    """
    Read totals, as totals_or_none() does. Keep what the buffer knows of ``wanted`` on the request.
    """
    if request is None or wanted is None:
        return totals_or_none(keys)
    known = get_buffer().read_numbers(Wanted([*keys, *wanted.totals], wanted.visitors))
    memory_of(request).remember(known.state.totals, known.visitors)
    return totals_or_none(keys, known.state)


def page_total(request: HttpRequest | None, obj: Model, *, counter: str) -> int | None:
    """
    Return the total of ``obj`` for a page; None if it cannot be read now.

    Takes it from ``request`` or ``obj``, if one of them has it from a moment ago. Then it costs
    nothing. If not, costs what get_hits() costs.
    """
    key = _key_or_none(obj, counter)
    if key is None:
        return None
    total: int | None = _recall(request, obj, key)
    if total is not None:
        return total
    found = read_numbers(Wanted([key]))
    _remember(request, obj, key, found, Wish(counter))
    return found.get(key)


def page_visitors(
    request: HttpRequest | None,
    obj: Model,
    *,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
) -> Visitors | None:
    """
    Return the visitors of ``obj`` for a page; None if they cannot be read now.

    Takes them from ``request`` or ``obj``, if one of them has them from a moment ago. Then it costs
    nothing. If not, costs what read_numbers() costs, and what get_visitors() costs if the last day
    is not today.

    Raises InvalidArgument if the counter does not count visitors.
    """
    key = _key_or_none(obj, valid_visitor_counter(counter))
    if key is None:
        return None
    wanted = CounterRange(key, first_day, last_day)
    count: Visitors | None = _recall(request, obj, wanted)
    if count is not None:
        return count
    found: dict[Any, Any] = {}
    if last_day == day_of():
        found.update(read_numbers(Wanted(visitors=[wanted])))
        days = (last_day - first_day).days + 1
        _remember(request, obj, key, found, Wish(counter, days))
    else:
        with _errors_logged("Visitors cannot be read"):
            found.update(get_visitors_of_ranges([wanted], guard=page_read_breaker().guard))
        if request is not None:
            memory_of(request).remember(found)
    return found.get(wanted)


def page_hits_of_days(
    request: HttpRequest | None,
    obj: Model,
    *,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
) -> int | None:
    """
    Return the hits on ``obj`` in a range of days for a page; None if they cannot be read now.

    Takes them from ``request``, if it has them from a moment ago. Then it costs nothing. If not,
    costs what get_hits() costs.
    """
    key = _key_or_none(obj, counter)
    if key is None:
        return None
    wanted = CounterRange(key, first_day, last_day)
    hits: int | None = _recall(request, obj, HitsOf(wanted))
    if hits is None:
        days, guard = series.day_range(first_day, last_day), page_read_breaker().guard
        with _errors_logged("The hits of some days cannot be read"):
            hits = series.read_hits_of_each([key], days, guard=guard)[key]
        if request is not None and hits is not None:
            memory_of(request).remember({HitsOf(wanted): hits})
    return hits


def _key_or_none(obj: Model, counter: str) -> CounterKey | None:
    try:
        return counter_key(obj, counter=counter)
    except DATABASE_ERRORS as exc:
        logger.error("A number of a page cannot be read: %s", exc)
        return None


def _recall(request: HttpRequest | None, obj: Model, number: Number) -> Any:
    """Return a number that the request or the object remembers; None without it."""
    value = memory_of(request).recall(number) if request else None
    return numbers_of(obj).recall(number) if value is None else value


def _remember(
    request: HttpRequest | None, obj: Model, key: CounterKey, found: FoundNumbers, wish: Wish
) -> None:
    """Keep numbers for the tags that follow. If the page has recorded ``obj``, keep its wish."""
    if request is not None:
        memory_of(request).remember(found)
        add_wish(request, obj, key, wish)


def read_numbers(wanted: Wanted, *, for_later_pages: bool = True) -> FoundNumbers:
    """
    Read numbers of any objects. Leaves out those that cannot be read now.

    With Redis, costs one round trip. If there are totals that Redis does not know, costs one more
    and a query. If there are visitors that it does not know, costs one more and one or two queries;
    Redis then knows them until midnight. Without Redis, costs a query for all totals, and one for
    all visitors. All that is for each 2,000 totals and 500 ranges of visitors.

    In a transaction, Redis must not keep what was read. So with ``for_later_pages``, what it does
    not know is read again after the COMMIT.
    """
    totals = split([*wanted.totals], TOTALS_AT_A_TIME)
    visitors = split([*wanted.visitors], RANGES_AT_A_TIME)
    found: dict[Any, Any] = {}
    for piece in zip_longest(totals, visitors, fillvalue=()):
        found.update(_read_piece(Wanted(*piece), for_later_pages))
    return found


def _read_piece(wanted: Wanted, for_later_pages: bool) -> FoundNumbers:
    known = get_buffer().read_numbers(wanted)
    missing, using = _missing_totals(wanted, known), hits_alias()
    if for_later_pages and (missing or known.unkept) and open_transactions([using]):
        load = partial(_load, Wanted(missing, [*known.unkept]))
        run_after_commit(load, databases=[using])
    found: dict[Any, Any] = {}
    found.update(totals_or_none(wanted.totals, known.state))
    found.update(known.visitors)
    with _errors_logged("Visitors cannot be read"):
        found.update(_keep_visitors(known.unkept))
        others = [of for of in wanted.visitors if of not in found]
        found.update(get_visitors_of_ranges(others, guard=page_read_breaker().guard))
    return found


def _missing_totals(wanted: Wanted, known: BufferNumbers) -> list[CounterKey]:
    """Return the counters whose totals the buffer can keep, but does not know."""
    state = known.state
    return [key for key in wanted.totals if key not in state.totals] if state.pending else []


def _load(wanted: Wanted) -> None:
    """Let the buffer keep numbers that it does not know, so that the next page has them."""
    known = get_buffer().read_numbers(wanted)
    if missing := _missing_totals(wanted, known):
        totals_or_none(missing, known.state)
    with _errors_logged("Visitors cannot be read"):
        _keep_visitors(known.unkept)


def _keep_visitors(
    unkept: Mapping[CounterRange, UnkeptRange],
) -> Mapping[CounterRange, Visitors]:
    """
    Read ranges from the table, and let the buffer keep them.

    Leaves them all out within a transaction, which may see the table as it was when it began. Also
    leaves out ranges with visitors who wait in the table for the next flush.
    """
    using = hits_alias()
    if not unkept or is_in_transaction(using):
        return {}
    with page_read_breaker().guard(), savepoint(using):
        rows = daily_visitors.read_ranges(unkept, using=using)
    return get_buffer().keep_visitors(rows, unkept)
