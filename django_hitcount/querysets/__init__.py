"""Querysets that carry totals."""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar

from django.db import models
from django.utils.functional import cached_property

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import last_days
from django_hitcount.db.expressions import TotalInTables
from django_hitcount.querysets import iterables
from django_hitcount.querysets.iterables import VisitorsWanted

ModelT = TypeVar("ModelT", bound=models.Model)

QuerySetT = TypeVar("QuerySetT", bound=models.QuerySet[Any])


def with_hits(
    queryset: QuerySetT, *, counter: str = DEFAULT_COUNTER, name: str = "hit_total"
) -> QuerySetT:
    """
    Annotate each object of any queryset with the total of ``counter``, under ``name``.

    In SQL (to filter, order, aggregate or take values) it is what the tables hold: with
    Redis, all hits up to the last flush. On the objects themselves it is exact. Costs a
    subquery, and with Redis one round trip for all objects (one per chunk with
    iterator()), and one more with one query for totals that Redis does not know.

    Raises ValueError if objects need ``name`` themselves. Settings are not read before the
    queryset is evaluated; it then raises UnknownCounter if ``counter`` is not declared, and
    HitCountError if the counts are in another database.
    """
    _check_free(queryset.model, name)
    return _exact(queryset.annotate(**{name: TotalInTables(queryset.model, counter)}))


def with_visitors(
    queryset: QuerySetT,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int = 1,
    name: str = "hit_visitors",
) -> QuerySetT:
    """
    Put the Visitors of the last ``days``, today included, on each object, under ``name``.

    They are no annotation: a database cannot merge the visitors of several days. Costs
    what get_visitors() costs, once for all objects (once per chunk with iterator()).

    Raises ValueError if objects need ``name`` themselves or an annotation has it, and
    InvalidDay if ``days`` is no number of days. When it is evaluated, the queryset raises
    UnknownCounter, or VisitorsNotCounted if the counter does not count them.
    """
    _check_free(queryset.model, name)
    if name in queryset.query.annotations:
        raise ValueError(f"{name!r} is an annotation of this queryset: use another name.")
    last_days(days)
    clone = queryset.all()
    iterables.want_visitors(clone.query, name, VisitorsWanted(counter, days))
    return _exact(clone)


def _exact(queryset: QuerySetT) -> QuerySetT:
    rows: iterables.Rows = queryset._iterable_class
    queryset._iterable_class = iterables.exact(rows)
    return queryset


def _check_free(model: type[models.Model], name: str) -> None:
    """Raise ValueError if an attribute ``name`` would hide something that objects need."""
    label = model._meta.label
    if name.startswith("_"):
        raise ValueError(f"{name!r} is a private name of {label}: use another name.")
    if name in _names_of_fields(model):
        raise ValueError(f"{name!r} is a field of {label}: use another name.")
    if _is_needed(model, name):
        raise ValueError(f"{name!r} is part of the class {label}: use another name.")


def _names_of_fields(model: type[models.Model]) -> set[str]:
    fields = model._meta.get_fields()
    return {field.name for field in fields} | {getattr(field, "attname", "") for field in fields}


def _is_needed(model: type[models.Model], name: str) -> bool:
    """A plain value is a default, and a cached property is made to be filled in."""
    found = next((vars(cls)[name] for cls in model.__mro__ if name in vars(cls)), None)
    if isinstance(found, cached_property | functools.cached_property):
        return False
    return callable(found) or hasattr(found, "__get__")


class HitCountQuerySet(models.QuerySet[ModelT]):
    """A queryset that knows how often its objects were hit."""

    def with_hits(self, *, counter: str = DEFAULT_COUNTER, name: str = "hit_total") -> Self:
        """See with_hits() of this module."""
        return with_hits(self, counter=counter, name=name)

    def with_visitors(
        self, *, counter: str = DEFAULT_COUNTER, days: int = 1, name: str = "hit_visitors"
    ) -> Self:
        """See with_visitors() of this module."""
        return with_visitors(self, counter=counter, days=days, name=name)

    @property
    def _iterable_class(self) -> iterables.Rows:
        """
        What QuerySet keeps under this name, made exact when the query wants it.

        So a query that was pickled, and an iterable that another library sets later, do not
        bring the figures of the tables.
        """
        rows: iterables.Rows = self._rows
        return iterables.exact(rows) if iterables.wants_figures(self.query) else rows

    @_iterable_class.setter
    def _iterable_class(self, rows: iterables.Rows) -> None:
        self._rows = rows


_FromQuerySet = models.Manager.from_queryset(HitCountQuerySet)


class HitCountManager(_FromQuerySet[ModelT]):
    """A manager whose querysets know with_hits() and with_visitors()."""
