"""Read what a report says beside the hits of days and objects: some rows of small tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Max, OuterRef, QuerySet, Subquery, Sum, Value

from django_hitcount.counters.days import day_of
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.sql import read_together
from django_hitcount.db.tables import DailyModelHits, HitSlot, LastBatch, RefusedHitSlot
from django_hitcount.reports.periods import Period
from django_hitcount.reports.selection import CountedModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What the small tables say."""

    models: Sequence[CountedModel]
    """The models whose objects have hits in the tables, by name."""

    refused: Sequence[tuple[str, int]]
    """The refused hits of a counter in a period, by refusal."""

    last_flush_at: datetime.datetime | None
    """When a flush last wrote hits into the tables; None if none ever did."""


def read_overview(period: Period, *, counter: str, using: str) -> Overview:
    """Read the models with hits, the refused hits, and when the last flush was. Costs a query."""
    last_flush = (
        LastBatch.objects.using(using)
        .annotate(of_all=Value(True))
        .values_list("of_all")
        .annotate(last=Max("flushed_at"))
    )
    refused = (
        RefusedHitSlot.objects.using(using)
        .filter(day__range=period.ends, counter=counter)
        .values_list("refusal")
        .annotate(sum=Sum("hits"))
    )
    with savepoint(using):
        flushes, types, sums = read_together(last_flush, _select_types(using), refused)
    return Overview(
        models=_find_models(types),
        refused=[(refusal, int(hits)) for refusal, hits in sums],
        last_flush_at=flushes[0][1],
    )


def find_day_with_hits(
    models: Sequence[CountedModel], *, counter: str, using: str
) -> datetime.date | None:
    """Return the newest day that is over and has hits that are compacted. Costs a query."""
    rows = DailyModelHits.objects.using(using).filter(
        content_type_id__in=[counted.content_type_id for counted in models],
        counter=counter,
        day__lt=day_of(),
        hits__gt=0,
    )
    with savepoint(using):
        newest: datetime.date | None = rows.aggregate(newest=Max("day"))["newest"]
    return newest


def _select_types(using: str) -> QuerySet[Any, Any]:
    """Select the content types of which there is a row of hits."""
    # Not EXISTS: MariaDB would read a whole index for it. In the order of an index, because
    # PostgreSQL would read all rows for each content type without hits.
    rows = HitSlot.objects.filter(content_type=OuterRef("pk")).order_by(*HitSlot.KEY, "slot")
    one = rows.values("content_type")[:1]
    types = ContentType.objects.using(using).alias(counted=Subquery(one))
    return types.filter(counted__isnull=False).values_list("pk", "app_label", "model")


def _find_models(types: Iterable[tuple[Any, ...]]) -> list[CountedModel]:
    """Return the models of content types, without those that the site does not have any more."""
    found = (
        CountedModel(content_type_id=pk, model=model)
        for pk, app_label, name in types
        if (model := ContentType(app_label=app_label, model=name).model_class())
    )
    return sorted(found, key=lambda counted: (counted.name, counted.label))
