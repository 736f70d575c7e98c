"""The numbers that are read: their names, and what objects remember of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple, Self, overload

from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import days_until
from django_hitcount.counters.keys import CounterKey

FRESH_SECONDS = 10.0
"""Longer than a page takes. What lives longer reads its numbers again."""

_ON_STATE = "hitcount_numbers"
"""The attribute of ``obj._state``: so it is in no field and in no pickle of the object."""


class Number(NamedTuple):
    """What names a number: the hits or the visitors of a counter, of all time or of some days."""

    key: CounterKey
    first_day: datetime.date | None = None
    """None, as the last day, if the number is a total: the hits of all time."""

    last_day: datetime.date | None = None
    of_visitors: bool = False
    """Whether it is a number of visitors, on some days, and not of hits."""

    @property
    def days(self) -> tuple[datetime.date, datetime.date]:
        """The first and the last day; those of the calendar if it is a total."""
        return self.first_day or datetime.date.min, self.last_day or datetime.date.max

    @property
    def text(self) -> str:
        """The counter's name and the days, as the scripts take them."""
        return f"{self.key.counter}:{self.first_day}:{self.last_day}"

    def has(self, day: datetime.date) -> bool:
        """Return whether the number is also about ``day``."""
        first_day, last_day = self.days
        return first_day <= day <= last_day


class Wish(NamedTuple):
    """A number that pages or lists show of any objects: a total, or the visitors of some days."""

    counter: str
    days: int = 0
    """How many days, today included. 0: the total."""

    def days_on(self, today: datetime.date) -> tuple[Any, Any, bool]:
        """Return all that names the number beside its counter."""
        return (*days_until(today, self.days), True) if self.days else (None, None, False)

    def of(self, key: CounterKey, today: datetime.date) -> Number:
        """Return what names this number of an object. ``key`` is any of its counters."""
        return Number(key._replace(counter=self.counter), *self.days_on(today))


class FreshNumbers(dict[Number, tuple[Any, float]]):
    """
    Numbers, and when they were read. Forgets them after ten seconds.

    Threads may share it, as they may share an object. Pickling, as a cache does, empties it.
    """

    def remember(self, numbers: Mapping[Number, Any]) -> None:
        """Keep numbers that were read a moment ago."""
        now = monotonic()
        for number, value in numbers.items():
            self[number] = value, now

    def recall(self, number: Number) -> Any:
        """Return a number that was read a moment ago; None without it."""
        value, read_at = self.get(number, (None, 0.0))
        return value if monotonic() - read_at <= FRESH_SECONDS else None

    def forget(self, is_meant: Callable[[Number], bool]) -> None:
        """Forget the numbers for which ``is_meant`` returns True."""
        for number in [*self]:
            if is_meant(number):
                self.pop(number, None)

    def __reduce__(self) -> tuple[type[FreshNumbers], tuple[()]]:
        return FreshNumbers, ()


class HitsOfObject(cached_property[int]):
    """
    A property that is never cached, but an object may have an attribute in place of it.

    So popular() sets ``hits`` on objects with the mixin as on others.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> int: ...

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | int:
        return self if instance is None else self.func(instance)


def numbers_of(obj: Model) -> FreshNumbers:
    """
    Return what an object remembers.

    If a view copies an object by setting its ``pk`` to None, the numbers of the copy have another
    key than those that were read.
    """
    found: FreshNumbers = vars(obj._state).setdefault(_ON_STATE, FreshNumbers())
    return found


def forget_numbers(obj: Model, *, counter: str | None = None) -> None:
    """Forget what ``obj`` remembers, of ``counter`` or of all counters."""
    if "hits" in vars(obj) and _has_property(obj, "hits"):
        vars(obj).pop("hits", None)
    remembered: FreshNumbers | None = vars(obj._state).get(_ON_STATE)
    if remembered:
        remembered.forget(lambda number: counter in (None, number.key.counter))


def set_hits(obj: Model, name: str, total: int, *, counter: str) -> None:
    """
    Set a total as an attribute, unless the object remembers it and has a property for it.

    The property reads it again when it is no longer fresh.
    """
    if counter == DEFAULT_COUNTER and _has_property(obj, name):
        vars(obj).pop(name, None)
    else:
        setattr(obj, name, total)


def _has_property(obj: Model, name: str) -> bool:
    return isinstance(getattr(type(obj), name, None), HitsOfObject)
