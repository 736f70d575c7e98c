"""Querysets whose objects have totals and visitors: with_hits() and with_visitors()."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import models

from django_hitcount import rankings, series
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import last_days
from django_hitcount.counters.primary_keys import is_part_of_class
from django_hitcount.db.expressions import TotalInTables
from django_hitcount.prefetching import IterableClass, make_exact, want_visitors, wants_numbers

P = ParamSpec("P")

ResultT = TypeVar("ResultT")

ModelT = TypeVar("ModelT", bound=models.Model)

QuerySetT = TypeVar("QuerySetT", bound=models.QuerySet[Any])


def with_hits(
    queryset: QuerySetT, *, counter: str = DEFAULT_COUNTER, name: str = "hit_total"
) -> QuerySetT:
    """
    Annotate each object of a queryset with the total of a counter.

    On the objects, the total is exact. In SQL (to filter, order, aggregate or take values) it is
    the total in the tables: with Redis, all hits up to the last flush.

    Args:
        queryset: any queryset of any model. It is not changed.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        name: the attribute and annotation that holds the total.

    Raises ValueError if the model uses ``name`` for something else. The settings are read when the
    queryset is evaluated. Then it raises UnknownCounter if ``counter`` is not declared, and
    HitCountError if the counts are in another database.

    Costs a subquery. With Redis, costs one round trip for all objects (one per chunk with
    iterator()), and one more and a query if there are totals that Redis does not know.
    """
    _check_name_is_free(queryset.model, name)
    return _use_exact_iterable(
        queryset.annotate(**{name: TotalInTables(queryset.model, counter=counter)})
    )


def with_visitors(
    queryset: QuerySetT,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int = 1,
    name: str = "hit_visitors",
) -> QuerySetT:
    """
    Put the Visitors of the last ``days`` on each object of a queryset.

    They are not an annotation, so SQL cannot filter or order by them: a database cannot merge
    the visitors of several days.

    Args:
        queryset: any queryset of any model. It is not changed.
        counter: the name of a counter with the option ``visitors``.
        days: how many days, today included.
        name: the attribute that holds the Visitors.

    Raises ValueError if the model uses ``name`` for something else or an annotation has this name,
    and InvalidDay if ``days`` is not a valid number of days. When the queryset is evaluated, raises
    UnknownCounter if ``counter`` is not declared, and VisitorsNotCounted if it does not count
    visitors.

    Costs what get_visitors() costs, once for all objects (once per chunk with iterator()).
    """
    _check_name_is_free(queryset.model, name)
    if name in queryset.query.annotations:
        raise ValueError(f"{name!r} is an annotation of this queryset: use another name.")
    last_days(days)
    clone = queryset.all()
    want_visitors(clone.query, name, (counter, days))
    return _use_exact_iterable(clone)


def _use_exact_iterable(queryset: QuerySetT) -> QuerySetT:
    """Change ``queryset``: its objects then have the totals and visitors that its query wants."""
    iterable_class: IterableClass = queryset._iterable_class
    queryset._iterable_class = make_exact(iterable_class)
    return queryset


def _check_name_is_free(model: type[models.Model], name: str) -> None:
    """Raise ValueError if the model uses ``name`` for something that objects need."""
    label = model._meta.label
    if name.startswith("_"):
        raise ValueError(f"{name!r} is a private name of {label}: use another name.")
    fields = model._meta.get_fields()
    if name in {*(f.name for f in fields), *(getattr(f, "attname", "") for f in fields)}:
        raise ValueError(f"{name!r} is a field of {label}: use another name.")
    if is_part_of_class(model, name):
        raise ValueError(f"{name!r} is part of the class {label}: use another name.")


def async_twin(method: Callable[P, ResultT]) -> Callable[P, Coroutine[Any, Any, ResultT]]:
    """
    Make the async twin of a method.

    sync_to_async() alone would hide its type, and a manager would not copy it from its queryset.
    """
    run = sync_to_async(method)
    owner, dot, name = method.__qualname__.rpartition(".")

    @wraps(method)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        return await run(*args, **kwargs)

    twin.__name__, twin.__qualname__ = f"a{name}", f"{owner}{dot}a{name}"
    twin.__doc__ = f"See {name}()."
    return twin


class HitCountQuerySet(models.QuerySet[ModelT]):
    """A queryset with the methods with_hits(), with_visitors(), most_viewed() and trending()."""

    def with_hits(self, *, counter: str = DEFAULT_COUNTER, name: str = "hit_total") -> Self:
        """Annotate each object with the total of ``counter``; see the function with_hits()."""
        return with_hits(self, counter=counter, name=name)

    def with_visitors(
        self, *, counter: str = DEFAULT_COUNTER, days: int = 1, name: str = "hit_visitors"
    ) -> Self:
        """Put the Visitors of the last ``days`` on each object; see with_visitors()."""
        return with_visitors(self, counter=counter, days=days, name=name)

    def most_viewed(
        self,
        limit: int,
        *,
        counter: str = DEFAULT_COUNTER,
        days: int | None = None,
        first_day: datetime.date | None = None,
        last_day: datetime.date | None = None,
    ) -> list[ModelT]:
        """Return the objects with the most hits; see rankings.most_viewed()."""
        return rankings.most_viewed(
            self, limit, counter=counter, days=days, first_day=first_day, last_day=last_day
        )

    amost_viewed = async_twin(most_viewed)
    """See most_viewed()."""

    def trending(
        self, limit: int, *, counter: str = DEFAULT_COUNTER, half_life_days: float = 3
    ) -> list[ModelT]:
        """Return the objects that are viewed most lately; see rankings.trending()."""
        return rankings.trending(self, limit, counter=counter, half_life_days=half_life_days)

    atrending = async_twin(trending)
    """See trending()."""

    def hits_by_day(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> dict[datetime.date, int]:
        """Return the hits of each day of a range; see series.hits_by_day()."""
        return series.hits_by_day(self, first_day, last_day, counter=counter)

    ahits_by_day = async_twin(hits_by_day)
    """See hits_by_day()."""

    def hits_by_week(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> dict[datetime.date, int]:
        """Return the hits of each week of a range; see series.hits_by_week()."""
        return series.hits_by_week(self, first_day, last_day, counter=counter)

    ahits_by_week = async_twin(hits_by_week)
    """See hits_by_week()."""

    def hits_by_month(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> dict[datetime.date, int]:
        """Return the hits of each month of a range; see series.hits_by_month()."""
        return series.hits_by_month(self, first_day, last_day, counter=counter)

    ahits_by_month = async_twin(hits_by_month)
    """See hits_by_month()."""

    @property
    def _iterable_class(self) -> IterableClass:
        """
        The iterable class that QuerySet keeps here, made exact if the query wants it.

        This is decided when the queryset is evaluated. So it also works with a query that was
        pickled, and with an iterable class that another library sets later.
        """
        original: IterableClass = self._original_iterable_class
        return make_exact(original) if wants_numbers(self.query) else original

    @_iterable_class.setter
    def _iterable_class(self, iterable_class: IterableClass) -> None:
        self._original_iterable_class = iterable_class


_FromQuerySet = models.Manager.from_queryset(HitCountQuerySet)


class HitCountManager(_FromQuerySet[ModelT]):
    """A manager of HitCountQuerySet, with the same methods."""
