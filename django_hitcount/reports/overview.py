"""Read what a report says beside the hits of days and objects: some rows of small tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import DateTimeField, F, Max, OuterRef, QuerySet, Subquery, Sum, Value

from django_hitcount.counters.days import day_of
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DailyModelHits, HitSlot, LastBatch, RefusedHitSlot
from django_hitcount.reports.periods import Period
from django_hitcount.reports.selection import CountedModel

Rows = QuerySet[Any, Any]

FLUSH, MODEL, REFUSAL = "flush", "model", "refusal"
"""The values of a column of the union that says what a row is about."""

NO_TEXT = Value("")
NO_MOMENT = Value(None, output_field=DateTimeField())


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
    """
    Read the models with hits, the refused hits, and when the last flush was. Costs a query.

    A row of the union is ("flush", "", "", "", 0, when), ("model", its app, its name, "", its
    content type id, None) or ("refusal", "", "", its name, hits, None). Texts of two tables have
    columns of their own: MySQL and MariaDB do not unite different collations.
    """
    others = (_select_models(using), _select_refused(period, counter, using))
    with savepoint(using):
        rows = [*_select_last_flush(using).union(*others, all=True)]
    return Overview(
        models=_find_models(row[1:5] for row in rows if row[0] == MODEL),
        refused=[(row[3], int(row[4])) for row in rows if row[0] == REFUSAL],
        last_flush_at=next(row[5] for row in rows if row[0] == FLUSH),
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


def _select_last_flush(using: str) -> Rows:
    batches = LastBatch.objects.using(using)
    named = _name_columns(batches, FLUSH)
    last: Rows = named.annotate(number=Value(0), moment=Max("flushed_at"))
    return last


def _select_models(using: str) -> Rows:
    """Select the content types of which there is a row of hits."""
    # Not EXISTS: MariaDB would read a whole index for it. In the order of an index, because
    # PostgreSQL would read all rows for each content type without hits.
    rows = HitSlot.objects.filter(content_type=OuterRef("pk")).order_by(*HitSlot.KEY, "slot")
    one = rows.values("content_type")[:1]
    types = ContentType.objects.using(using).alias(counted=Subquery(one))
    types = types.filter(counted__isnull=False)
    named = _name_columns(types, MODEL, app=F("app_label"), model_name=F("model"))
    found: Rows = named.annotate(number=F("pk"), moment=NO_MOMENT)
    return found


def _select_refused(period: Period, counter: str, using: str) -> Rows:
    rows = RefusedHitSlot.objects.using(using).filter(
        day__range=(period.first_day, period.last_day), counter=counter
    )
    named = _name_columns(rows, REFUSAL, reason=F("refusal"))
    sums: Rows = named.annotate(number=Sum("hits"), moment=NO_MOMENT)
    return sums


def _name_columns(
    rows: Rows,
    kind: str,
    *,
    app: Value | F = NO_TEXT,
    model_name: Value | F = NO_TEXT,
    reason: Value | F = NO_TEXT,
) -> Rows:
    """Return the columns of the union that have texts. Sums are grouped by them."""
    named = rows.annotate(kind=Value(kind), app=app, model_name=model_name, reason=reason)
    texts: Rows = named.values_list("kind", "app", "model_name", "reason")
    return texts


def _find_models(rows: Iterable[tuple[str, str, str, int]]) -> list[CountedModel]:
    """Return the models of content types, without those that the site does not have any more."""
    found = (
        CountedModel(content_type_id=pk, model=model)
        for app, model_name, _, pk in rows
        if (model := ContentType(app_label=app, model=model_name).model_class())
    )
    return sorted(found, key=lambda counted: (counted.name, counted.label))
