"""
Put exact totals and visitors on the objects of a queryset.

The iterable class of a queryset makes objects from rows: Django's ``ModelIterable``, or a class of
another library. make_exact() makes a subclass of it, which also sets totals and visitors on the
objects.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Model
from django.db.models.query import (
    BaseIterable,
    FlatValuesListIterable,
    ValuesIterable,
    ValuesListIterable,
)
from django.db.models.sql import Query

from django_hitcount import page_numbers, totals, unique_visitors
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import last_days
from django_hitcount.counters.fresh_totals import remember_total, remember_visitors
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.page_numbers import Wanted
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.expressions import TotalInTables
from django_hitcount.db.routing import hits_alias

IterableClass = type[Any]
"""A subclass of Django's BaseIterable."""

_WITHOUT_OBJECTS = (ValuesIterable, ValuesListIterable, FlatValuesListIterable)
"""The iterable classes of values() and values_list(). They do not yield objects."""

_VISITORS_ATTRIBUTE = "_hitcount_visitors"


class WantedVisitors(NamedTuple):
    """The visitors that with_visitors() puts on objects."""

    counter: str
    days: int


def wanted_totals(query: Query) -> dict[str, str]:
    """
    Return the counters whose totals a query wants, by the name of the annotation.

    The annotation has the counter, so this is right even if the query was copied or pickled, or if
    another annotation has the name now.
    """
    return {
        name: annotation.counter
        for name, annotation in query.annotation_select.items()
        if isinstance(annotation, TotalInTables)
    }


def wanted_visitors(query: Query) -> Mapping[str, WantedVisitors]:
    """Return the visitors that a query wants, by the name of the attribute for them."""
    wanted: Mapping[str, WantedVisitors] = vars(query).get(_VISITORS_ATTRIBUTE, {})
    return {name: value for name, value in wanted.items() if name not in query.annotations}


def add_wanted_visitors(query: Query, name: str, wanted: WantedVisitors) -> None:
    """Add visitors to what a query wants. Django copies and pickles attributes of a query."""
    setattr(query, _VISITORS_ATTRIBUTE, {**wanted_visitors(query), name: wanted})


def wants_totals_or_visitors(query: Query) -> bool:
    """Return whether a query wants totals or visitors for its objects."""
    return bool(wanted_visitors(query) or wanted_totals(query))


class _ExactType(type):
    """The type of the classes that make_exact() makes. With it, pickle can make them again."""

    original: IterableClass


def make_exact(iterable_class: IterableClass) -> IterableClass:
    """
    Make a subclass that sets the totals and visitors that a query wants on the objects.

    Returns ``iterable_class`` itself if it does this already, or does not yield objects.
    """
    if isinstance(iterable_class, _ExactType) or issubclass(iterable_class, _WITHOUT_OBJECTS):
        return iterable_class
    return _build_exact(iterable_class)  # type: ignore[arg-type]  # mypy treats a class as unhashable.


@cache
def _build_exact(original: Any) -> _ExactType:
    return _ExactType(
        f"Exact{original.__name__}", (_ExactIterable, original), {"original": original}
    )


def _reduce_exact(made: _ExactType) -> tuple[Any, tuple[IterableClass]]:
    """Return how pickle makes a class again: it cannot import it from a module."""
    return make_exact, (made.original,)


copyreg.pickle(_ExactType, _reduce_exact)


class _ExactIterable(BaseIterable):  # type: ignore[type-arg]
    """A base class that comes before another iterable class. Sets values on its objects."""

    def __iter__(self) -> Iterator[Any]:
        rows: Iterator[Any] = super().__iter__()  # type: ignore[misc]
        return self._fill_in(rows) if wants_totals_or_visitors(self.queryset.query) else rows

    def _fill_in(self, rows: Iterator[Any]) -> Iterator[Any]:
        query = self.queryset.query
        hit_totals, hit_visitors = wanted_totals(query), wanted_visitors(query)
        set_totals = _set_totals if get_buffer().keeps_hits else self._bring_totals_of_tables
        for wanted in hit_visitors.values():
            unique_visitors.valid_visitor_counter(wanted.counter)
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(rows, size)]:
            objs = [row for row in chunk if isinstance(row, Model)]
            set_totals(objs, hit_totals)
            for name, wanted in hit_visitors.items():
                _set_visitors(objs, name, wanted)
            yield from chunk

    def _bring_totals_of_tables(self, objs: Sequence[Model], counters: Mapping[str, str]) -> None:
        """
        Remember the totals of the tables for ``article.hits``. Without Redis, they are exact.

        Does nothing if they come from another database: it may be a replica that is not up to date.
        """
        if self.queryset.db != hits_alias():
            return
        for name, counter in counters.items():
            for obj in objs:
                remember_total(obj, getattr(obj, name), counter=counter)


def _set_totals(objs: Sequence[Model], counters: Mapping[str, str]) -> None:
    """Set exact totals on objects. Several instances may be the same object."""
    keys = {
        counter: [counter_key(obj, counter=counter) for obj in objs]
        for counter in {*counters.values()}
    }
    distinct: set[CounterKey] = set().union(*keys.values())
    found = totals.totals_or_none(distinct) if distinct else {}
    for name, counter in counters.items():
        for obj, key in zip(objs, keys[counter], strict=True):
            if key in found:
                setattr(obj, name, found[key])
                remember_total(obj, found[key], counter=counter)


def _set_visitors(objs: Sequence[Model], name: str, wanted: WantedVisitors) -> None:
    days = last_days(wanted.days)
    keys = [CounterRange(counter_key(obj, counter=wanted.counter), *days) for obj in objs]
    found = page_numbers.read_numbers(Wanted(visitors={*keys})).visitors
    for obj, key in zip(objs, keys, strict=True):
        visitors = found.get(key)
        setattr(obj, name, visitors)
        if visitors is not None:
            remember_visitors(obj, visitors, key)
