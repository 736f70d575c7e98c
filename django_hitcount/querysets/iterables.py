"""How rows of a query become objects that carry exact totals and visitors."""

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

from django_hitcount import totals, unique_visitors
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.fresh_totals import bring_total
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.names import declared_counter
from django_hitcount.db.counted_objects import counter_key
from django_hitcount.db.expressions import TotalInTables
from django_hitcount.db.routing import hits_alias

Rows = type[Any]
"""A subclass of BaseIterable: makes of each row of a query what a queryset gives."""

_NO_OBJECTS = (ValuesIterable, ValuesListIterable, FlatValuesListIterable)


class VisitorsWanted(NamedTuple):
    """What with_visitors() asks for."""

    counter: str
    days: int


def totals_wanted(query: Query) -> dict[str, str]:
    """
    Counters by the name of the annotation that holds their total.

    The annotation itself says so: whatever copies a query, or pickles it, or gives the name
    to something else, keeps this right.
    """
    return {
        name: annotation.counter
        for name, annotation in query.annotation_select.items()
        if isinstance(annotation, TotalInTables)
    }


def visitors_wanted(query: Query) -> Mapping[str, VisitorsWanted]:
    """What with_visitors() put on a query, by the name of the attribute."""
    wanted: Mapping[str, VisitorsWanted] = vars(query).get(_ON_QUERY, {})
    return {name: what for name, what in wanted.items() if name not in query.annotations}


def want_visitors(query: Query, name: str, wanted: VisitorsWanted) -> None:
    """Put on a query, where Django copies and pickles it, which visitors objects get."""
    setattr(query, _ON_QUERY, {**visitors_wanted(query), name: wanted})


_ON_QUERY = "_hitcount_visitors"


def wants_figures(query: Query) -> bool:
    """Do objects of this query get totals or visitors?"""
    return bool(visitors_wanted(query) or totals_wanted(query))


class _MadeOf(type):
    """The type of what exact() makes: says what pickle has to make it of again."""

    rows: Rows


def exact(rows: Rows) -> Rows:
    """``rows`` whose objects get what their query wants; itself, if it gives no objects."""
    if isinstance(rows, _MadeOf) or issubclass(rows, _NO_OBJECTS):
        return rows
    return _made_of(rows)  # type: ignore[arg-type]  # mypy takes a class for unhashable.


@cache
def _made_of(rows: Any) -> _MadeOf:
    return _MadeOf(f"Exact{rows.__name__}", (_ExactObjects, rows), {"rows": rows})


def _make_again(made: _MadeOf) -> tuple[Any, tuple[Rows]]:
    return exact, (made.rows,)


copyreg.pickle(_MadeOf, _make_again)


class _ExactObjects(BaseIterable):  # type: ignore[type-arg]
    """Goes before another iterable: fills its objects in, a chunk at a time."""

    def __iter__(self) -> Iterator[Any]:
        rows: Iterator[Any] = super().__iter__()  # type: ignore[misc]
        return self._filled_in(rows) if wants_figures(self.queryset.query) else rows

    def _filled_in(self, rows: Iterator[Any]) -> Iterator[Any]:
        query = self.queryset.query
        hit_totals, hit_visitors = totals_wanted(query), visitors_wanted(query)
        set_totals = _set_totals if get_buffer().keeps_hits else self._tables_have_them
        for wanted in hit_visitors.values():
            unique_visitors.valid_visitor_counter(declared_counter(wanted.counter))
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(rows, size)]:
            objs = [row for row in chunk if isinstance(row, Model)]
            set_totals(objs, hit_totals)
            for name, wanted in hit_visitors.items():
                _set_visitors(objs, name, wanted)
            yield from chunk

    def _tables_have_them(self, objs: Sequence[Model], counters: Mapping[str, str]) -> None:
        """Without a buffer the annotation is exact, but for a replica that lags behind."""
        if self.queryset.db != hits_alias():
            return
        for name, counter in counters.items():
            for obj in objs:
                bring_total(obj, counter, getattr(obj, name))


def _set_totals(objs: Sequence[Model], counters: Mapping[str, str]) -> None:
    """One object may be in several rows, each of which has an instance of its own."""
    keys = {
        counter: [counter_key(obj, counter) for obj in objs] for counter in {*counters.values()}
    }
    distinct: set[CounterKey] = set().union(*keys.values())
    found = totals.totals_or_none(distinct) if distinct else {}
    for name, counter in counters.items():
        for obj, key in zip(objs, keys[counter], strict=True):
            if key in found:
                setattr(obj, name, found[key])
                bring_total(obj, counter, found[key])


def _set_visitors(objs: Sequence[Model], name: str, wanted: VisitorsWanted) -> None:
    found = unique_visitors.visitors_or_none(objs, days=wanted.days, counter=wanted.counter)
    for obj in objs:
        setattr(obj, name, found.get(obj))
