"""
The numbers that a page shows, and what it remembers on its request: the hits that it has recorded,
so that it counts once, and the numbers that it has read, so that its next tags need not read them.

A process also remembers what pages show beside the hit that they record. It learns this from the
tags: if a page has recorded a hit on an object, and then reads a number of it, the next hit on such
a page reads this number in the same round trip. If nobody shows it there, that was some
microseconds of Redis, and no query.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import Hit, NewHits
from django_hitcount.counters.keys import CounterKey, valid_visitor_counter
from django_hitcount.counters.numbers import FreshNumbers, Number, Wish, numbers_of
from django_hitcount.counters.primary_keys import is_unsaved, named_models
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.savepoints import DelayedWork
from django_hitcount.known_rows import make_named_row
from django_hitcount.numbers import errors_logged, read_numbers
from django_hitcount.outages.waits import CurrentPage

MOST_WISHES = 20
"""Numbers that a record brings along. A page with more of them reads the others one by one."""

_ON_REQUEST = "_hitcount_memory"


class PageMemory(FreshNumbers):
    """The memory of one request."""

    def __init__(self) -> None:
        self.hits: dict[CounterKey, tuple[Hit, DelayedWork | None]] = {}
        """The last hit on each counter, and the work that waits for a COMMIT, if it does."""

    def recall_hit(self, key: CounterKey) -> Hit | None:
        """Return the last hit on a counter; None without one, or if that was rolled back."""
        hit, delayed = self.hits.get(key, (None, None))
        return None if delayed and delayed.is_cancelled else hit

    def recall(self, number: Number) -> Any:
        """
        Return a number that was recorded or read a moment ago; None without it.

        A total includes the hit of the page, unless that was rolled back.
        """
        key = number.key
        if number == Number(key) and key in self.hits and self.recall_hit(key) is None:
            return None
        return super().recall(number)

    def forget_days(self, hits: Iterable[NewHits]) -> None:
        """Forget the visitors and hits of days of counters that the page is about to record."""
        keys = {hit.key for hit in hits}
        self.forget(lambda number: number.last_day is not None and number.key in keys)


def memory_of(request: HttpRequest) -> PageMemory:
    """
    Return the memory of a request. Creates it at first use.

    The request of Django REST framework shares that of Django's, which it wraps.
    """
    memory: PageMemory | None = request.__dict__.get(_ON_REQUEST)
    if memory is None:
        wrapped = request.__dict__.get("_request")
        memory = PageMemory() if wrapped is None else memory_of(wrapped)
        request.__dict__[_ON_REQUEST] = memory
    return memory


def remember_results(
    objs: Sequence[Model],
    hits: Sequence[NewHits],
    results: Sequence[Hit],
    memory: PageMemory | None,
    delayed: DelayedWork | None,
) -> None:
    """
    Keep results in the memory of the page, and totals on objects, unless hits are delayed.

    Also sees to the rows of objects that may have none yet: see make_named_row().
    """
    now = time.monotonic()
    for obj, hit, result in zip(objs, hits, results, strict=True):
        number = Number(hit.key)
        if memory is not None:
            memory.hits[hit.key] = result, delayed
            memory[number] = result.total, now
        if delayed is None and result.total is not None:
            numbers_of(obj)[number] = result.total, now
        if result.counted and (obj.__class__ in named_models or hasattr(obj, "hit_count_object")):
            make_named_row(hit.key[:2])


@cached_for_settings("HITCOUNT", maxsize=1024)
def _wishes_of(model: type[Model], route: str) -> list[Wish]:
    """Return the wishes of pages with the same URL pattern that record objects of one class."""
    return []


def _add_wish(request: HttpRequest, obj: Model, key: CounterKey, wish: Wish) -> None:
    """
    Add a wish of the page of ``request``, if it has recorded a hit on ``obj``.

    Drops the oldest one if there are too many. The total of a recorded counter needs no wish.
    """
    hits = memory_of(request).hits
    if (wish.days or key not in hits) and any(recorded[:2] == key[:2] for recorded in hits):
        wishes = _wishes_of(obj._meta.model, getattr(request.resolver_match, "route", ""))
        others = [known for known in wishes if known != wish]
        wishes[:] = [*others, wish][-MOST_WISHES:]


def find_wanted(request: HttpRequest, obj: Model, key: CounterKey) -> tuple[Number, ...]:
    """Return what the page of ``request`` will show of ``obj``, as far as that is known."""
    wishes = _wishes_of(obj._meta.model, getattr(request.resolver_match, "route", ""))
    return _make_wanted(tuple(wishes), key, day_of()) if wishes else ()


@lru_cache(maxsize=1024)
def _make_wanted(
    wishes: tuple[Wish, ...], key: CounterKey, today: datetime.date
) -> tuple[Number, ...]:
    """Return what these wishes are about today, on one object."""
    return tuple(wish.of(key, today) for wish in wishes)


def read_totals(
    keys: Sequence[CounterKey], request: HttpRequest | None, wanted: Sequence[Number]
) -> Mapping[Number, int]:
    """Read totals. Keep what the buffer knows of ``wanted`` on the request."""
    totals, known = [*map(Number, keys)], None
    if request is not None and wanted:
        known = get_buffer().read([*totals, *wanted])
        memory_of(request).remember(known.values)
    return read_numbers(totals, known, on_page=True)


def page_number(
    request: HttpRequest | None,
    obj: Model,
    *,
    counter: str,
    days: tuple[datetime.date, datetime.date] | None = None,
    of_visitors: bool = False,
) -> Any:
    """
    Return a number of ``obj`` for a page; None if it cannot be read now, or ``obj`` is not saved.

    Takes it from ``request`` or ``obj``, if one of them has it from a moment ago. Then it costs
    nothing. If not, costs what read_numbers() costs. Without days, it is the total.
    """
    if is_unsaved(obj):
        return None
    if of_visitors:
        valid_visitor_counter(counter)
    value = None
    with CurrentPage(request), errors_logged("A number of a page cannot be read"):
        key = counter_key(obj, counter=counter)
        first_day, last_day = days or (None, None)
        number = Number(key, first_day, last_day, of_visitors)
        value = memory_of(request).recall(number) if request else None
        if value is None:
            value = numbers_of(obj).recall(number)
        if value is None:
            found = read_numbers([number], on_page=True, for_later_pages=True)
            value = found.get(number)
            if request is not None:
                memory_of(request).remember(found)
                today = day_of()
                wish = Wish(counter, (today - days[0]).days + 1 if days else 0)
                if wish.of(key, today) == number:  # Another one is not kept by the buffer.
                    _add_wish(request, obj, key, wish)
    return value
