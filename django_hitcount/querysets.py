"""Querysets that carry totals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Self, TypeVar

from django.db import models, router
from django.db.models.expressions import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.db.models.query import ModelIterable

from django_hitcount import totals
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters import counter_key, declared_counter
from django_hitcount.exceptions import HitCountError
from django_hitcount.expressions import ContentTypeId, KeyText
from django_hitcount.tables import HitSlot

ModelT = TypeVar("ModelT", bound=models.Model)


class HitCountQuerySet(models.QuerySet[ModelT]):
    """A queryset that knows how often its objects were hit."""

    hit_totals: dict[str, str]
    """Counters by the name of the attribute that holds their total."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hit_totals = {}

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
        if issubclass(annotated._iterable_class, ModelIterable):
            annotated._iterable_class = _ExactIterable
        return annotated

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
        return clone


class _ExactIterable(ModelIterable):  # type: ignore[type-arg]
    """Objects whose annotations are replaced by exact totals, a chunk at a time."""

    def __iter__(self) -> Iterator[models.Model]:
        objs = super().__iter__()
        if not get_buffer().keeps_hits:
            yield from objs
            return
        size = self.chunk_size if self.chunked_fetch else None
        while chunk := [*islice(objs, size)]:
            self._fill_in(chunk)
            yield from chunk

    def _fill_in(self, objs: list[models.Model]) -> None:
        wanted = {
            (obj, name): counter_key(obj, counter)
            for name, counter in self.queryset.hit_totals.items()  # type: ignore[attr-defined]
            for obj in objs
        }
        found = totals.totals_or_none(set(wanted.values()))
        for (obj, name), key in wanted.items():
            if key in found:
                setattr(obj, name, found[key])
