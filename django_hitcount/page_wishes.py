"""
What pages show beside the hit that they record, so that the record brings it along.

A process learns it from the tags: if a page has recorded a hit on an object, and then reads a
number of it, the next hit on such a page reads this number in the same round trip. If nobody shows
it there, that was some microseconds of Redis, and no query.
"""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.counters.days import day_of, days_until
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.page_numbers import Wanted
from django_hitcount.page_hits import has_recorded

MOST_WISHES = 20
"""Numbers that a record brings along. A page with more of them reads the others one by one."""


class Wish(NamedTuple):
    """A number that a page shows: a total, or the visitors of some days."""

    counter: str
    days: int = 0
    """How many days, today included. 0: the total."""


class Wishes:
    """The wishes of one kind of page."""

    def __init__(self) -> None:
        self.known: tuple[Wish, ...] = ()

    def add(self, wish: Wish) -> None:
        """Add a wish. Drops the oldest one if there are too many."""
        others = [known for known in self.known if known != wish]
        self.known = (*others, wish)[-MOST_WISHES:]


@cached_for_settings("HITCOUNT", maxsize=1024)
def _wishes_of(model: type[Model], route: str) -> Wishes:
    """Return the wishes of pages with the same URL pattern that record objects of one class."""
    return Wishes()


def _find(request: HttpRequest, obj: Model) -> Wishes:
    match = request.resolver_match
    return _wishes_of(obj._meta.model, match.route or "" if match else "")


def add_wish(request: HttpRequest, obj: Model, key: CounterKey, wish: Wish) -> None:
    """Add a wish of the page of ``request``, if it has recorded a hit on ``obj``."""
    if has_recorded(request, key[:2]):
        _find(request, obj).add(wish)


def find_wanted(request: HttpRequest, obj: Model, key: CounterKey) -> Wanted | None:
    """Return what the page of ``request`` will show of ``obj``; None if that is not known."""
    wishes = _find(request, obj).known
    return _make_wanted(wishes, key[0], key[1], day_of()) if wishes else None


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
