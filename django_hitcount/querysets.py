"""Querysets whose objects have totals and visitors: with_hits() and with_visitors()."""

from __future__ import annotations

import datetime
from typing import Any, Self, TypedDict, TypeVar, Unpack

from django.db import models
from django.db.models.expressions import Expression

from django_hitcount import rankings, series
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import last_days
from django_hitcount.counters.primary_keys import is_part_of_class
from django_hitcount.db.expressions import HitsInTables, VisitorsInTables
from django_hitcount.prefetching import IterableClass, find_wishes, make_exact
from django_hitcount.twins import async_method

ModelT = TypeVar("ModelT", bound=models.Model)

QuerySetT = TypeVar("QuerySetT", bound=models.QuerySet[Any])


def with_hits(
    queryset: QuerySetT, *, counter: str = DEFAULT_COUNTER, name: str | None = None
) -> QuerySetT:
    """
    Annotate each object of a queryset with the hits of a counter, of all time. For the hits of some
    days, use ``get_hits(objects, days=7)``.

    On the objects, the number is exact. In SQL (to filter, order, aggregate or take values) it is
    that of the tables: with Redis, all hits up to the last flush.

    Args:
        queryset: any queryset of any model. It is not changed.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        name: the annotation and attribute. By default ``hits``, and for another counter than
            "views" its name and ``_hits``, as in ``downloads_hits``.

    Raises ValueError if the model uses ``name`` for something else. The settings are read when the
    queryset is evaluated. Then it raises InvalidArgument if ``counter`` is not declared, and
    HitCountError if the counts are in another database.

    Costs a subquery. With Redis, costs one round trip for all objects (one per chunk with
    iterator()), and one more and a query if there are numbers that Redis does not know.
    """
    name = name or default_name("hits", counter)
    return _annotate(queryset, name, HitsInTables(queryset.model, counter=counter))


def with_visitors(
    queryset: QuerySetT,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int = 1,
    name: str | None = None,
) -> QuerySetT:
    """
    Annotate each object of a queryset with the Visitors of the last ``days``.

    On the objects, the number is that of get_visitors(). In SQL it is the sum of the visitors of
    each day in the tables. That is the same, up to the last flush, if VISITOR_KEY_ROTATION is
    "day"; otherwise it is larger, because a database cannot tell who came on several days.

    Args:
        queryset: any queryset of any model. It is not changed.
        counter: the name of a counter with the option ``visitors``.
        days: how many days, today included.
        name: the annotation and attribute. By default ``visitors``, and for another counter than
            "views" its name and ``_visitors``.

    Raises ValueError if the model uses ``name`` for something else, and InvalidArgument if ``days``
    is not a valid number of days. When the queryset is evaluated, raises InvalidArgument if
    ``counter`` is not declared or does not count visitors, and HitCountError if the counts are in
    another database.

    Costs two subqueries, and what get_visitors() costs, once for all objects (once per chunk with
    iterator()).
    """
    last_days(days)
    name = name or default_name("visitors", counter)
    return _annotate(queryset, name, VisitorsInTables(queryset.model, counter=counter, days=days))


def default_name(noun: str, counter: str) -> str:
    """Return the name of a number of a counter, as of its annotation."""
    return noun if counter == DEFAULT_COUNTER else f"{counter}_{noun}"


def _annotate(queryset: QuerySetT, name: str, expression: Expression) -> QuerySetT:
    """Annotate a queryset. Its objects then have exact numbers."""
    label = queryset.model._meta.label
    if name.startswith("_"):
        raise ValueError(f"{name!r} is a private name of {label}: use another name.")
    if is_part_of_class(queryset.model, name):  # As all fields, which Django refuses, too.
        raise ValueError(f"{name!r} is part of the class {label}: use another name.")
    annotated = queryset.annotate(**{name: expression})
    iterable_class: IterableClass = annotated._iterable_class
    annotated._iterable_class = make_exact(iterable_class)
    return annotated


class OptionsOfHits(TypedDict, total=False):
    """The options of the functions that read the hits of some days."""

    days: int | None
    first_day: datetime.date | None
    last_day: datetime.date | None
    counter: str


class OptionsOfPopular(OptionsOfHits, total=False):
    """The options of popular()."""

    name: str


class HitCountQuerySet(models.QuerySet[ModelT]):
    """
    A queryset with the methods below: the functions of these names, with their options.

    Build yours from it::

        class ArticleQuerySet(HitCountQuerySet):
            def published(self):
                return self.filter(is_published=True)

        class Article(HitCountMixin, models.Model):
            objects = ArticleQuerySet.as_manager()
    """

    def with_hits(self, *, counter: str = DEFAULT_COUNTER, name: str | None = None) -> Self:
        """Annotate each object with its hits; see the function with_hits()."""
        return with_hits(self, counter=counter, name=name)

    def with_visitors(
        self, *, counter: str = DEFAULT_COUNTER, days: int = 1, name: str | None = None
    ) -> Self:
        """Annotate each object with the Visitors of the last ``days``; see with_visitors()."""
        return with_visitors(self, counter=counter, days=days, name=name)

    def popular(self, limit: int, **options: Unpack[OptionsOfPopular]) -> list[ModelT]:
        """
        Return the objects with the most hits; see the function popular(). The options are ``days``,
        ``first_day``, ``last_day``, ``counter`` and ``name``.
        """
        return rankings.popular(self, limit, **options)

    apopular = async_method(popular)
    """See popular()."""

    def trending(
        self, limit: int, *, counter: str = DEFAULT_COUNTER, half_life_days: float = 3
    ) -> list[ModelT]:
        """Return the objects that are viewed most lately; see the function trending()."""
        return rankings.trending(self, limit, counter=counter, half_life_days=half_life_days)

    atrending = async_method(trending)
    """See trending()."""

    def hits_by_day(self, **options: Unpack[OptionsOfHits]) -> dict[datetime.date, int]:
        """
        Return the hits of each day of a range; see the function hits_by_day(). The options are
        ``days``, ``first_day``, ``last_day`` and ``counter``.
        """
        return series.hits_by_day(self, **options)

    ahits_by_day = async_method(hits_by_day)
    """See hits_by_day()."""

    def hits_by_week(self, **options: Unpack[OptionsOfHits]) -> dict[datetime.date, int]:
        """
        Return the hits of each week of a range; see the function hits_by_week(). The options are
        ``days``, ``first_day``, ``last_day`` and ``counter``.
        """
        return series.hits_by_week(self, **options)

    ahits_by_week = async_method(hits_by_week)
    """See hits_by_week()."""

    def hits_by_month(self, **options: Unpack[OptionsOfHits]) -> dict[datetime.date, int]:
        """
        Return the hits of each month of a range; see the function hits_by_month(). The options are
        ``days``, ``first_day``, ``last_day`` and ``counter``.
        """
        return series.hits_by_month(self, **options)

    ahits_by_month = async_method(hits_by_month)
    """See hits_by_month()."""

    @property
    def _iterable_class(self) -> IterableClass:
        """
        The iterable class that QuerySet keeps here, made exact if the query wants it.

        This is decided when the queryset is evaluated. So it also works with a query that was
        pickled, and with an iterable class that another library sets later.
        """
        original: IterableClass = self._original_iterable_class
        return make_exact(original) if find_wishes(self.query) else original

    @_iterable_class.setter
    def _iterable_class(self, iterable_class: IterableClass) -> None:
        self._original_iterable_class = iterable_class


_FromQuerySet = models.Manager.from_queryset(HitCountQuerySet)


class HitCountManager(_FromQuerySet[ModelT]):
    """A manager of HitCountQuerySet, with the same methods."""
