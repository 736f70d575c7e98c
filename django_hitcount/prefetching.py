"""
Read the numbers of many objects at once: of a list, or of those that a queryset yields.

A list that shows them then costs nothing more.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice, product
from typing import Any, TypeAlias

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
from django_hitcount.counters import list_values
from django_hitcount.counters.days import day_of, last_days
from django_hitcount.counters.keys import check_counter, valid_visitor_counter
from django_hitcount.counters.numbers import Number, Wish, numbers_of, set_hits
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.expressions import HitsInTables, VisitorsInTables
from django_hitcount.db.tables import hits_alias
from django_hitcount.exceptions import UnsavedObject
from django_hitcount.numbers import errors_logged, read_numbers
from django_hitcount.twins import async_twin

__all__ = ["aprefetch_hits", "prefetch_hits"]

IterableClass: TypeAlias = Any
"""
A subclass of Django's BaseIterable: it makes objects from the rows of a queryset. (mypy would take
``type[Any]`` for unhashable.)
"""

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
    If it does not know all visitors, costs one or two more and a query; a round trip sends up
    to a hundred sketches, of 12 KB at most. Without Redis, costs a query for the totals, and one
    for the visitors. All that is for each 2,000 totals and 500 ranges of visitors.
    """
    counters = [*dict.fromkeys(map(check_counter, list_values(counters)))]
    numbers = [] if visitors_days is None else list_values(visitors_days)
    for days in numbers:
        last_days(days)
    with_visitors = _counters_with_visitors(counters) if numbers else []
    if isinstance(objects, Model | str) or not isinstance(objects, Iterable):
        raise UnsavedObject(f"Invalid objects: {objects!r}. Pass a list or a queryset of objects.")
    objs = [obj for obj in objects if obj is not None and not is_unsaved(obj)]
    totals = [Wish(counter) for counter in counters]
    of_days = [Wish(*wanted) for wanted in product(with_visitors, numbers)]
    with errors_logged(f"The hits of {len(objs)} objects cannot be read"):
        read_of_objects(chain(*(_name_numbers(objs, wish) for wish in (*totals, *of_days))))


def _counters_with_visitors(counters: Sequence[str]) -> list[str]:
    """Return those of ``counters`` that count visitors; raise InvalidArgument if none does."""
    options = get_config().counters
    found = [counter for counter in counters if options[counter].visitors]
    return found or [valid_visitor_counter(counter) for counter in counters[:1]]


NumberOfObject = tuple[Model, Number]
"""A number, and the object that it is about. Several instances may be the same object."""


def _name_numbers(objs: Sequence[Model], wish: Wish) -> list[NumberOfObject]:
    """Return what names a number of each object."""
    days = wish.days_on(day_of())
    return [(obj, Number(counter_key(obj, counter=wish.counter), *days)) for obj in objs]


def read_of_objects(
    wanted: Iterable[NumberOfObject],
    known: Mapping[Number, Any] | None = None,
    *,
    for_later_pages: bool = True,
) -> Mapping[Number, Any]:
    """
    Read numbers of objects that are not ``known``, see read_numbers(), and keep all on the objects.
    """
    found, wanted = {**(known or {})}, [*wanted]
    missing = {number for _, number in wanted} - found.keys()
    found |= read_numbers(missing, on_page=True, for_later_pages=for_later_pages)
    for obj, number in wanted:
        if number in found:
            numbers_of(obj).remember({number: found[number]})
    return found


def find_wishes(query: Query) -> dict[str, Wish]:
    """
    Return the numbers that a query wants of its objects, by the name of the annotation.

    The annotation has the counter, so this is right even if the query was copied or pickled, or if
    another annotation has the name now.
    """
    return {
        name: Wish(annotation.counter, getattr(annotation, "days", 0))
        for name, annotation in query.annotation_select.items()
        if isinstance(annotation, HitsInTables | VisitorsInTables)
    }


class _ExactType(type):
    """The type of the classes that make_exact() makes. With it, pickle can make them again."""

    original: IterableClass


@cache
def make_exact(iterable_class: IterableClass) -> IterableClass:
    """
    Make a subclass that sets the totals and visitors that a query wants on the objects.

    Returns ``iterable_class`` itself if it does this already, or does not yield objects.
    """
    if isinstance(iterable_class, _ExactType) or issubclass(iterable_class, _WITHOUT_OBJECTS):
        return iterable_class
    bases = _ExactIterable, iterable_class
    return _ExactType(f"Exact{iterable_class.__name__}", bases, {"original": iterable_class})


def _reduce_exact(made: _ExactType) -> tuple[Any, tuple[IterableClass]]:
    """Return how pickle makes a class again: it cannot import it from a module."""
    return make_exact, (made.original,)


copyreg.pickle(_ExactType, _reduce_exact)


class _ExactIterable(BaseIterable):  # type: ignore[type-arg]
    """A base class that comes before another iterable class. Sets values on its objects."""

    def __iter__(self) -> Iterator[Any]:
        rows: Iterator[Any] = super().__iter__()  # type: ignore[misc]
        wishes = find_wishes(self.queryset.query)
        return self._fill_in(rows, wishes) if wishes else rows

    def _fill_in(self, rows: Iterator[Any], wishes: Mapping[str, Wish]) -> Iterator[Any]:
        # The query finds the hits under the keys of its own objects.
        is_other = hasattr(self.queryset.model, "hit_count_object")
        is_exact = not (is_other or get_buffer().keeps_hits)
        exact = [name for name, wish in wishes.items() if is_exact and not wish.days]
        if self.queryset.db != hits_alias():  # It may be a replica that is not up to date.
            wishes, exact = {name: wishes[name] for name in wishes.keys() - exact}, []
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(rows, size)]:
            objs = [row for row in chunk if isinstance(row, Model)]
            numbers = {name: _name_numbers(objs, wish) for name, wish in wishes.items()}
            known = {number: getattr(obj, name) for name in exact for obj, number in numbers[name]}
            wanted = chain(*numbers.values())
            found = read_of_objects(wanted, known, for_later_pages=size is None)
            for name, wish in wishes.items():
                for obj, number in numbers[name]:
                    if number not in found:
                        continue
                    if wish.days:
                        setattr(obj, name, found[number])
                    else:
                        set_hits(obj, name, found[number], counter=wish.counter)
            yield from chunk


aprefetch_hits = async_twin(prefetch_hits)
"""See prefetch_hits()."""
