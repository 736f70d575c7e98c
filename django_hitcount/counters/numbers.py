"""The numbers that pages show: their names, what a buffer knows of them, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple, Self, overload

from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.batches import BufferState, FlushPosition
from django_hitcount.counters.keys import CounterKey, CounterRange, DailyVisitorsKey
from django_hitcount.counters.visitors import Visitors

FRESH_SECONDS = 10.0
"""Longer than a page takes. What lives longer reads its numbers again."""

_ON_STATE = "hitcount_numbers"
"""The attribute of ``obj._state``: so it is in no field and in no pickle of the object."""


class HitsOf(NamedTuple):
    """The hits of a range of days."""

    range: CounterRange

    @property
    def key(self) -> CounterKey:
        """The counter."""
        return self.range.key


Number = CounterKey | CounterRange | HitsOf
"""What names a number: the total of a counter, the visitors of some days, or the hits of these."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The numbers to read. Equal to nothing but itself, so that what it needs can be cached."""

    totals: Collection[CounterKey] = ()
    visitors: Collection[CounterRange] = ()
    """Ranges that end today."""


class UnkeptRange(NamedTuple):
    """What a buffer knows of a range of days that it does not keep, but can."""

    position: FlushPosition
    """Where its partition was."""

    days: Mapping[DailyVisitorsKey, int]
    """The numbers of visitors that the buffer has of each day."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferNumbers:
    """What a buffer knows of the numbers that were wanted, without the tables."""

    state: BufferState = field(default_factory=BufferState)
    visitors: Mapping[CounterRange, Visitors] = field(default_factory=dict)
    unkept: Mapping[CounterRange, UnkeptRange] = field(default_factory=dict)
    """What keep_visitors() needs to keep the other ranges."""


NO_NUMBERS = BufferNumbers()
"""What a buffer knows that nobody has asked."""


class FreshNumbers(dict[Number, tuple[Any, float]]):
    """
    Numbers, and when they were read. Forgets them after ten seconds.

    Threads may share it, as they may share an object. Pickling, as a cache does, empties it.
    """

    def remember(self, numbers: Mapping[Any, Any]) -> None:
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
        remembered.forget(lambda number: counter in (None, _key_of(number).counter))


def _key_of(number: Number) -> CounterKey:
    return number if isinstance(number, CounterKey) else number.key


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
