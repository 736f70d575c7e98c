"""
Read the numbers of many objects at once: of a list, or of those that a queryset yields.

A list that shows them then costs nothing more.
"""

from __future__ import annotations

import copyreg
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice, product
from typing import Any

from django.db.models import Model
from django.db.models.query import (
    BaseIterable,
    FlatValuesListIterable,
    ValuesIterable,
    ValuesListIterable,
)
from django.db.models.sql import Query

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.days import last_days
from django_hitcount.counters.keys import CounterRange, check_counter, valid_visitor_counter
from django_hitcount.counters.numbers import Wanted, numbers_of, set_hits
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.expressions import HitsInTables, VisitorsInTables
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import UnsavedObject
from django_hitcount.page_numbers import read_numbers
from django_hitcount.twins import async_twin

__all__ = ["aprefetch_hits", "prefetch_hits"]

logger = logging.getLogger("django_hitcount")

VisitorsOfDays = tuple[str, int]
"""The name of a counter, and a number of days: the visitors of these days, today included."""

IterableClass = type[Any]
"""A subclass of Django's BaseIterable: it makes objects from the rows of a queryset."""

_WITHOUT_OBJECTS = (ValuesIterable, ValuesListIterable, FlatValuesListIterable)
"""The iterable classes of values() and values_list(). They do not yield objects."""


def prefetch_hits(
    objects: Iterable[Model | None],
    *,
    counters: Sequence[str] = (DEFAULT_COUNTER,),
    visitors_days: int | Sequence[int] | None = None,
) -> None:
    """
    Read the totals of many objects, and keep them on the objects for ten seconds.

    Then ``obj.hits``, ``{% hits obj %}`` and ``{% visitors obj %}`` of these counters and days cost
    nothing. Numbers that cannot be read now are left out: their tags try again.

    Args:
        objects: a list, a queryset or a page of a paginator, with objects of any models. A queryset
            is evaluated, unless it has been. Skips None and objects that are not saved. Several
            instances of one object are read once.
        counters: the names of counters in HITCOUNT["COUNTERS"].
        visitors_days: also read the visitors of so many days, today included; or of each of several
            numbers of days. Reads those of the ``counters`` that count visitors.

    Raises InvalidArgument if something else than a saved object is in ``objects``, if another
    argument is invalid, and if none of ``counters`` counts visitors.

    With Redis, costs one round trip. If Redis does not know all totals, costs one more and a query.
    If it does not know all visitors, costs one more and one or two queries; a round trip sends up
    to a hundred sketches, of 12 KB at most. Without Redis, costs a query for the totals, and one
    for the visitors. All that is for each 2,000 totals and 500 ranges of visitors.
    """
    counters = [*dict.fromkeys(map(check_counter, _list_values(counters)))]
    numbers = [] if visitors_days is None else _list_values(visitors_days)
    for days in numbers:
        last_days(days)
    with_visitors = _counters_with_visitors(counters) if numbers else []
    if isinstance(objects, Model | str) or not isinstance(objects, Iterable):
        raise UnsavedObject(f"Invalid objects: {objects!r}. Pass a list or a queryset of objects.")
    objs = [obj for obj in objects if obj is not None and not is_unsaved(obj)]
    try:
        of_days = {*product(with_visitors, numbers)}
        read_of_objects(objs, counters, of_days, for_later_pages=True)
    except DATABASE_ERRORS as exc:
        logger.error("The hits of %d objects cannot be read: %s", len(objs), exc)


def _list_values(value: Any) -> list[Any]:
    """Return several values as a list, and one value, valid or not, as a list of it."""
    return [*value] if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _counters_with_visitors(counters: Sequence[str]) -> list[str]:
    """Return those of ``counters`` that count visitors; raise InvalidArgument if none does."""
    options = get_config().counters
    found = [counter for counter in counters if options[counter].visitors]
    return found or [valid_visitor_counter(counter) for counter in counters[:1]]


def read_of_objects(
    objs: Sequence[Model],
    counters: Collection[str],
    visitors: Collection[VisitorsOfDays],
    *,
    for_later_pages: bool,
) -> dict[str | VisitorsOfDays, list[Any]]:
    """
    Read totals of ``counters`` and visitors, and keep them on the objects; see read_numbers().

    Several instances may be the same object. Returns a list by counter, and one by counter and
    number of days, in the order of the objects: with None for what cannot be read now.
    """
    keys = {
        counter: [counter_key(obj, counter=counter) for obj in objs]
        for counter in {*counters, *(counter for counter, _ in visitors)}
    }
    ends = {days: last_days(days) for _, days in visitors}
    totals = {counter: keys[counter] for counter in counters}
    ranges = {
        (counter, days): [CounterRange(key, *ends[days]) for key in keys[counter]]
        for counter, days in visitors
    }
    wanted = Wanted({*chain(*totals.values())}, {*chain(*ranges.values())})
    found = read_numbers(wanted, for_later_pages=for_later_pages)
    named: dict[Any, list[Any]] = {**totals, **ranges}
    for obj, *numbers in zip(objs, *named.values(), strict=True):
        numbers_of(obj).remember({number: found.get(number) for number in numbers})
    return {name: [found.get(number) for number in numbers] for name, numbers in named.items()}


def _wanted_totals(query: Query) -> dict[str, str]:
    """
    Return the counters whose totals a query wants, by the name of the annotation.

    The annotation has the counter, so this is right even if the query was copied or pickled, or if
    another annotation has the name now.
    """
    return {
        name: annotation.counter
        for name, annotation in query.annotation_select.items()
        if isinstance(annotation, HitsInTables)
    }


def _wanted_visitors(query: Query) -> dict[str, VisitorsOfDays]:
    """Return the visitors that a query wants, by the name of the annotation."""
    return {
        name: (annotation.counter, annotation.days)
        for name, annotation in query.annotation_select.items()
        if isinstance(annotation, VisitorsInTables)
    }


def wants_numbers(query: Query) -> bool:
    """Return whether a query wants totals or visitors for its objects."""
    return bool(_wanted_visitors(query) or _wanted_totals(query))


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
        return self._fill_in(rows) if wants_numbers(self.queryset.query) else rows

    def _fill_in(self, rows: Iterator[Any]) -> Iterator[Any]:
        query, keeps_hits = self.queryset.query, get_buffer().keeps_hits
        hit_totals, visitors = _wanted_totals(query), _wanted_visitors(query)
        counters = {*hit_totals.values()} if keeps_hits else set()
        of_days = {*visitors.values()}
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(rows, size)]:
            objs = [row for row in chunk if isinstance(row, Model)]
            found = read_of_objects(objs, counters, of_days, for_later_pages=size is None)
            if not keeps_hits:
                found = {**found, **self._totals_of_tables(objs, hit_totals)}
            for name, counter in hit_totals.items():
                for obj, total in zip(objs, found[counter], strict=True):
                    if total is not None:
                        set_hits(obj, name, total, counter=counter)
            for name, wanted in visitors.items():
                for obj, count in zip(objs, found[wanted], strict=True):
                    if count is not None:
                        setattr(obj, name, count)
            yield from chunk

    def _totals_of_tables(
        self, objs: Sequence[Model], counters: Mapping[str, str]
    ) -> dict[Any, list[Any]]:
        """
        Return the totals that the query has found, by counter. Without Redis, they are exact.

        Leaves them out if they come from another database: it may be a replica that is not up to
        date.
        """
        if self.queryset.db != hits_alias():
            return {counter: [None] * len(objs) for counter in counters.values()}
        for name, counter in counters.items():
            for obj in objs:
                key = counter_key(obj, counter=counter)
                numbers_of(obj).remember({key: getattr(obj, name)})
        return {counter: [getattr(o, name) for o in objs] for name, counter in counters.items()}


aprefetch_hits = async_twin(prefetch_hits)
"""See prefetch_hits()."""
