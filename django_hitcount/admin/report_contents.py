"""Read what the report and its files show."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Max, Model, OuterRef, QuerySet, Subquery, Sum

from django_hitcount.counters.days import day_of
from django_hitcount.counters.keys import CounterKey, CounterRange, ObjectKey
from django_hitcount.counters.rankings import Order, RankedKey, weigh_days
from django_hitcount.db import ledger
from django_hitcount.db.ranking_scopes import Scope
from django_hitcount.db.rankings import compare_objects, stream_objects
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DailyModelHits, HitSlot, RefusedHitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.refusals import reasons_by_name
from django_hitcount.reports.labels import MOST_MODELS, label_object, load_objects
from django_hitcount.reports.rows import (
    Days,
    ObjectRow,
    RefusedRow,
    Report,
    days_csv,
    objects_csv,
    pick_days,
    refused_csv,
    refused_rows,
    share_of,
)
from django_hitcount.reports.selection import CountedModel, Period, Selection
from django_hitcount.series import hits_by_day
from django_hitcount.unique_visitors import get_visitors_of_ranges

ROWS = 10
"""Objects of a ranking on the page."""

MOST_VISITOR_DAYS = 92
"""Days whose visitors are read. Redis is asked for each day of each object."""

ROWS_AT_A_TIME = 1000
"""Rows of a file whose objects are loaded together."""

MOST_ROWS_WITH_VISITORS = 1000
VISITORS_AT_A_TIME = 100
"""Rows of a file whose visitors are read, and of how many together: a day may have 12 KB."""

FILES = ("days", "top", "rising", "falling", "refused")
"""The tables that can be downloaded, by the name in an address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What the small tables say."""

    models: Sequence[CountedModel]
    """The models whose objects have hits in the tables, by name."""

    refused: Sequence[RefusedRow]
    """The refused hits of a counter in a period."""

    last_flush_at: datetime.datetime | None
    """When a flush last wrote hits into the tables; None if none ever did."""


def read_overview(period: Period, *, counter: str, using: str) -> Overview:
    """Read the models with hits, the refused hits, and when the last flush was: three queries."""
    refused = RefusedHitSlot.objects.using(using).filter(day__range=period.ends, counter=counter)
    with savepoint(using):
        sums = dict(refused.values_list("refusal").annotate(sum=Sum("hits")))
        return Overview(
            models=_find_models(_select_types(using)),
            refused=refused_rows({name: int(sums[name]) for name in sums}, reasons_by_name()),
            last_flush_at=ledger.read_last_flush(using=using),
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


def read_report(selection: Selection, overview: Overview) -> Report:
    """
    Read all numbers of a report about some of the models of ``overview``.

    Costs up to seven queries, whatever the number of models, objects and hits: one for the hits by
    day, one or two for the rankings, one for the visitors if they are counted, and one for the
    objects of each of up to three models.
    """
    days, period = _read_days(selection), selection.period
    hits = pick_days(days, period)
    rankings = compare_objects(_scope(selection, overview), ROWS)
    first = {order: ranking.first(ROWS) for order, ranking in rankings.items()}
    keys = {ranked.object_key for rows in first.values() for ranked in rows}
    objects = load_objects(keys, overview.models, most_models=MOST_MODELS)
    total = sum(hits.values())
    rows = {
        order: _describe(enumerate(ranked, start=1), objects, selection, overview, total)
        for order, ranked in first.items()
    }
    return Report(
        selection=selection,
        hits=hits,
        before=pick_days(days, period.before),
        today=None if period.is_today else days.get(period.today),
        top=_add_visitors(rows[Order.TOP], selection),
        rising=rows[Order.RISING],
        falling=rows[Order.FALLING],
        is_certain=all(ranking.proves(ROWS) for ranking in rankings.values()),
        refused=overview.refused,
    )


def read_file(name: str, selection: Selection, overview: Overview) -> Iterator[str]:
    """
    Read one of FILES, with all rows of its table, piece by piece.

    Costs a query for each thousand objects of a model.
    """
    if name == "refused":
        return refused_csv(overview.refused)
    if name in ("rising", "falling"):
        rows = _stream(Order[name.upper()], selection, overview)
        return objects_csv(rows, has_shares=False)
    days, period = _read_days(selection), selection.period
    hits = pick_days(days, period)
    if name == "days":
        return days_csv(hits, pick_days(days, period.before))
    rows = _stream(Order.TOP, selection, overview, sum(hits.values()))
    return objects_csv(_stream_visitors(rows, selection), has_shares=True)


def _read_days(selection: Selection) -> Days:
    """Return the hits by day of both periods, and of today. Costs one query."""
    model = selection.model.model if selection.model else None
    first_day, last_day = selection.period.read_days
    return hits_by_day(model, first_day=first_day, last_day=last_day, counter=selection.counter)


def _scope(selection: Selection, overview: Overview) -> Scope:
    """Return what is ranked."""
    models = [selection.model] if selection.model else overview.models
    before = selection.period.before
    return Scope(
        content_type_ids=[counted.content_type_id for counted in models],
        counter=selection.counter,
        weights=weigh_days(selection.period.list_days()),
        before=before.list_days() if before else (),
    )


def _stream(
    order: Order, selection: Selection, overview: Overview, total: int = 0
) -> Iterator[ObjectRow]:
    """Yield all rows of a ranking. See _describe() for ``total``."""
    ranked = enumerate(stream_objects(_scope(selection, overview), order), start=1)
    while some := [*islice(ranked, ROWS_AT_A_TIME)]:
        objects = load_objects({row.object_key for _, row in some}, overview.models)
        yield from _describe(some, objects, selection, overview, total)


def _describe(
    ranked: Iterable[tuple[int, RankedKey]],
    objects: Mapping[ObjectKey, Model],
    selection: Selection,
    overview: Overview,
    total: int,
) -> list[ObjectRow]:
    """Return the rows of numbered objects. Their shares are those of ``total``, unless it is 0."""
    names = {of.content_type_id: of.model._meta.verbose_name for of in overview.models}
    is_compared = selection.period.before is not None
    return [
        ObjectRow(
            key=key,
            number=number,
            name=label_object(objects[key]) if key in objects else key[1],
            obj=objects.get(key),
            model_name=str(names[key[0]]),
            hits=hits,
            before=before if is_compared else None,
            share=share_of(hits, total),
        )
        for number, (key, hits, before) in ranked
    ]


def shows_visitors(selection: Selection) -> bool:
    """Return whether the report has a column of visitors."""
    return selection.counts_visitors and selection.period.days <= MOST_VISITOR_DAYS


def _stream_visitors(rows: Iterator[ObjectRow], selection: Selection) -> Iterator[ObjectRow]:
    """Add the visitors of the first rows."""
    for _ in range(MOST_ROWS_WITH_VISITORS // VISITORS_AT_A_TIME):
        yield from _add_visitors(islice(rows, VISITORS_AT_A_TIME), selection)
    yield from rows


def _add_visitors(rows: Iterable[ObjectRow], selection: Selection) -> Sequence[ObjectRow]:
    """Add the visitors of the period, if the report shows them, and if they can be read now."""
    found = [*rows]
    if not (found and shows_visitors(selection)):
        return found
    days = selection.period.ends
    ranges = [CounterRange(CounterKey(*row.key, selection.counter), *days) for row in found]
    try:
        visitors = get_visitors_of_ranges(ranges)
    except BufferUnavailable:
        return found
    # 0 is none: there are hits, so nobody counted their visitors.
    return [
        replace(row, visitors=int(visitors[wanted]) or None)
        for row, wanted in zip(found, ranges, strict=True)
    ]
