"""Querysets that carry totals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Self, TypeVar

from django.db import models, router
from django.db.models.expressions import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.db.models.query import ModelIterable

from django_hitcount import totals, unique_visitors
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters import counter_key, declared_counter, last_days
from django_hitcount.exceptions import HitCountError
from django_hitcount.expressions import ContentTypeId, KeyText
from django_hitcount.tables import HitSlot

ModelT = TypeVar("ModelT", bound=models.Model)


class HitCountQuerySet(models.QuerySet[ModelT]):
    """A queryset that knows how often its objects were hit."""

    hit_totals: dict[str, str]
    """Counters by the name of the attribute that holds their total."""

    hit_visitors: dict[str, tuple[str, int]]
    """Counters and days by the name of the attribute that holds their visitors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hit_totals = {}
        self.hit_visitors = {}

    def with_hits(self, counter: str = DEFAULT_COUNTER, *, name: str = "hit_total") -> Self:
        """
        Annotate each object with the total of ``counter``, under ``name``.

        In SQL (to filter, order, aggregate or take values) it is what the tables hold: with
        Redis, all hits up to the last flush. On the objects themselves it is exact. Costs a
        subquery, and with Redis one round trip for all objects (one per chunk with
        iterator()), and one more with one query for totals that Redis does not know.
        """
        annotated = self.annotate(**{name: self._total_in_tables(counter)})
        annotated.hit_totals[name] = counter
        return annotated._exact()

    def with_visitors(
        self, counter: str = DEFAULT_COUNTER, *, days: int = 1, name: str = "hit_visitors"
    ) -> Self:
        """
        Put the Visitors of the last ``days``, today included, on each object, under ``name``.

        They are no annotation: a database cannot merge the visitors of several days. Costs
        what get_visitors() costs, once for all objects (once per chunk with iterator()).

        Raises VisitorsNotCounted if the counter does not count them, InvalidDay if ``days``
        is no number of days, and ValueError if ``name`` is that of a field.
        """
        if name in {field.name for field in self.model._meta.get_fields()}:
            raise ValueError(f"{name!r} is a field of {self.model._meta.label}: use another name.")
        clone = self.all()
        last_days(days)
        clone.hit_visitors[name] = (unique_visitors.counting_visitors(counter), days)
        return clone._exact()

    def _exact(self) -> Self:
        if issubclass(self._iterable_class, ModelIterable):
            self._iterable_class = _ExactIterable
        return self

    def _total_in_tables(self, counter: str) -> Coalesce:
        hits_db = router.db_for_read(HitSlot)
        if hits_db != self.db:
            raise HitCountError(
                f"with_hits() needs {self.model._meta.label} and HitSlot in one database; they "
                f"are in {self.db!r} and {hits_db!r}. Use get_totals(objects) instead."
            )
        rows = (
            HitSlot.objects.filter(
                content_type_id=ContentTypeId(self.model),
                object_id=KeyText(OuterRef("pk"), model=self.model),
                counter=declared_counter(counter),
            )
            .order_by()
            .values("counter")
        )
        total = Subquery(
            rows.values(total=models.Sum("hits")), output_field=models.BigIntegerField()
        )
        return Coalesce(total, models.Value(0), output_field=models.BigIntegerField())

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]
        clone.hit_totals = {**self.hit_totals}
        clone.hit_visitors = {**self.hit_visitors}
        return clone


class _ExactIterable(ModelIterable):  # type: ignore[type-arg]
    """Objects that get exact totals and their visitors, a chunk at a time."""

    def __iter__(self) -> Iterator[models.Model]:
        queryset: HitCountQuerySet[Any] = self.queryset  # type: ignore[assignment]
        hit_totals = queryset.hit_totals if get_buffer().keeps_hits else {}
        objs = super().__iter__()
        if not hit_totals and not queryset.hit_visitors:
            yield from objs
            return
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(objs, size)]:
            _set_totals(chunk, hit_totals)
            for name, (counter, days) in queryset.hit_visitors.items():
                _set_visitors(chunk, name, counter, days)
            yield from chunk


def _set_totals(objs: list[models.Model], counters: dict[str, str]) -> None:
    wanted = {
        (obj, name): counter_key(obj, counter) for name, counter in counters.items() for obj in objs
    }
    found = totals.totals_or_none(set(wanted.values())) if wanted else {}
    for (obj, name), key in wanted.items():
        if key in found:
            setattr(obj, name, found[key])


def _set_visitors(objs: list[models.Model], name: str, counter: str, days: int) -> None:
    found = unique_visitors.visitors_or_none(objs, *last_days(days), counter=counter)
    for obj in objs:
        setattr(obj, name, found.get(obj))
