"""
What a page remembers on its request: the hits that it has recorded, so that it counts once, and the
numbers that it has read, so that its next tags need not read them again.

A process also remembers what pages show beside the hit that they record. It learns this from the
tags: if a page has recorded a hit on an object, and then reads a number of it, the next hit on such
a page reads this number in the same round trip. If nobody shows it there, that was some
microseconds of Redis, and no query.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.conf import cached_for_settings
from django_hitcount.counters.days import day_of, days_until
from django_hitcount.counters.hits import Hit, NewHits
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.numbers import FreshNumbers, Number, Wanted
from django_hitcount.db.savepoints import DelayedWork

MOST_WISHES = 20
"""Numbers that a record brings along. A page with more of them reads the others one by one."""

_ON_REQUEST = "_hitcount_memory"


class PageMemory:
    """The memory of one request."""

    __slots__ = ("_numbers", "hits")

    def __init__(self) -> None:
        self.hits: dict[CounterKey, tuple[Hit, DelayedWork | None]] = {}
        """The last hit on each counter, and the work that waits for a COMMIT, if it does."""

        self._numbers = FreshNumbers()

    def remember_hit(self, key: CounterKey, hit: Hit, delayed: DelayedWork | None) -> None:
        """Keep the result of a hit. ``delayed`` is the work that waits for a COMMIT, if it does."""
        self.hits[key] = hit, delayed
        self._numbers.remember({key: hit.total})

    def recall_hit(self, key: CounterKey) -> Hit | None:
        """Return the last hit on a counter; None without one, or if that was rolled back."""
        hit, delayed = self.hits.get(key, (None, None))
        return None if delayed and delayed.is_cancelled else hit

    def remember(self, *numbers: Mapping[Any, Any]) -> None:
        """Keep numbers that were read a moment ago."""
        for some in numbers:
            self._numbers.remember(some)

    def recall(self, number: Number) -> Any:
        """
        Return a number that was recorded or read a moment ago; None without it.

        A total includes the hit of the page, unless that was rolled back.
        """
        if number in self.hits and self.recall_hit(number) is None:
            return None
        return self._numbers.recall(number)

    def forget_days(self, hits: Iterable[NewHits]) -> None:
        """Forget the visitors and hits of days of counters that the page is about to record."""
        if self._numbers:
            keys = {hit.key for hit in hits}
            self._numbers.forget(lambda n: not isinstance(n, CounterKey) and n.key in keys)


def memory_of(request: HttpRequest) -> PageMemory:
    """Return the memory of a request. Creates it at first use."""
    memory: PageMemory | None = request.__dict__.get(_ON_REQUEST)
    if memory is None:
        memory = request.__dict__[_ON_REQUEST] = PageMemory()
    return memory


class Wish(NamedTuple):
    """A number that a page shows: a total, or the visitors of some days."""

    counter: str
    days: int = 0
    """How many days, today included. 0: the total."""


@cached_for_settings("HITCOUNT", maxsize=1024)
def _wishes_of(model: type[Model], route: str) -> list[Wish]:
    """Return the wishes of pages with the same URL pattern that record objects of one class."""
    return []


def _find_wishes(request: HttpRequest, obj: Model) -> list[Wish]:
    match = request.resolver_match
    return _wishes_of(obj._meta.model, match.route or "" if match else "")


def add_wish(request: HttpRequest, obj: Model, key: CounterKey, wish: Wish) -> None:
    """
    Add a wish of the page of ``request``, if it has recorded a hit on ``obj``.

    Drops the oldest one if there are too many. The total of a recorded counter needs no wish.
    """
    hits = memory_of(request).hits
    if (wish.days or key not in hits) and any(recorded[:2] == key[:2] for recorded in hits):
        wishes = _find_wishes(request, obj)
        others = [known for known in wishes if known != wish]
        wishes[:] = [*others, wish][-MOST_WISHES:]


def find_wanted(request: HttpRequest, obj: Model, key: CounterKey) -> Wanted | None:
    """Return what the page of ``request`` will show of ``obj``; None if that is not known."""
    wishes = _find_wishes(request, obj)
    return _make_wanted(tuple(wishes), key[0], key[1], day_of()) if wishes else None


@lru_cache(maxsize=1024)
def _make_wanted(
    wishes: tuple[Wish, ...], content_type_id: int, object_id: str, today: datetime.date
) -> Wanted:
    """Return what these wishes are about today, on one object."""
    totals: list[CounterKey] = []
    visitors: list[CounterRange] = []
    for counter, days in wishes:
        wanted = CounterKey(content_type_id, object_id, counter)
        if days:
            visitors.append(CounterRange(wanted, *days_until(today, days)))
        else:
            totals.append(wanted)
    return Wanted(tuple(totals), tuple(visitors))
