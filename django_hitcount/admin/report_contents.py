"""Read what the report shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django_hitcount.conf import get_config
from django_hitcount.counters.keys import CounterKey, ObjectKey
from django_hitcount.counters.rankings import TREND_UNIT, RankedKey
from django_hitcount.db.model_rankings import ModelRankings, rank_objects
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.refusals import reasons_by_name
from django_hitcount.reports.objects import load_objects, name_object
from django_hitcount.reports.overview import Overview
from django_hitcount.reports.rows import (
    Days,
    Report,
    TopRow,
    TrendingRow,
    refused_rows,
    share_of,
    split_days,
)
from django_hitcount.reports.selection import CountedModel, Selection
from django_hitcount.series import hits_by_day
from django_hitcount.visitor_ranges import get_visitors_of_ranges

ROWS = 10
"""Objects of a ranking."""

HALF_LIFE_DAYS = 3
"""A trend forgets half of a hit in these days: what is new shows, and a weekend hides nothing."""

MOST_VISITOR_DAYS = 92
"""Days whose visitors are read. Redis is asked for each day of each object."""


def read_report(selection: Selection, overview: Overview) -> Report:
    """
    Read all numbers of a report about some of the models of ``overview``.

    Costs up to seven queries, whatever the number of models, objects and hits: one for the hits by
    day, one or two for both rankings, one for the visitors if they are counted, and one for the
    objects of each of up to three models.
    """
    before, hits = _read_days(selection)
    top, trending = _rank(selection, overview.models)
    described = _describe([*top, *trending], overview.models)
    visitors = _read_visitors([row.object_key for row in top], selection)
    total = sum(hits.values())
    return Report(
        selection=selection,
        hits=hits,
        before=before,
        top=[
            TopRow(
                number=number,
                **described[row.object_key],
                hits=row.hits,
                share=share_of(row.hits, total),
                visitors=visitors.get(row.object_key),
            )
            for number, row in enumerate(top, start=1)
        ],
        trending=[
            TrendingRow(number=number, **described[row.object_key], score=row.hits / TREND_UNIT)
            for number, row in enumerate(trending, start=1)
        ],
        refused=refused_rows(overview.refused, reasons_by_name()),
    )


def _read_days(selection: Selection) -> tuple[Days, Days]:
    """Return the hits by day of the period before, and of the period. Costs one query for both."""
    period = selection.period
    days = hits_by_day(
        selection.model.model if selection.model else None,
        period.before.first_day,
        period.last_day,
        counter=selection.counter,
    )
    return split_days(days, period.first_day)


def _rank(selection: Selection, models: Sequence[CountedModel]) -> ModelRankings:
    """Return the objects with the most hits of the period, and those that are trending."""
    ranked = [selection.model] if selection.model else models
    return rank_objects(
        [counted.content_type_id for counted in ranked],
        ROWS,
        counter=selection.counter,
        first_day=selection.period.first_day,
        last_day=selection.period.last_day,
        half_life_days=HALF_LIFE_DAYS,
    )


def _describe(
    ranked: Iterable[RankedKey], models: Sequence[CountedModel]
) -> dict[ObjectKey, Mapping[str, Any]]:
    """Return what the rows of an object say about it, by object."""
    keys = {row.object_key for row in ranked}
    objects = load_objects(keys, models)
    names = {counted.content_type_id: counted.model._meta.verbose_name for counted in models}
    return {
        key: {
            "key": key,
            "name": name_object(key, objects),
            "obj": objects.get(key),
            "model_name": str(names[key[0]]),
        }
        for key in keys
    }


def shows_visitors(selection: Selection) -> bool:
    """Return whether the report has a column of visitors."""
    return counts_visitors(selection) and selection.period.days <= MOST_VISITOR_DAYS


def counts_visitors(selection: Selection) -> bool:
    """Return whether the visitors of the counter are counted."""
    return get_config().options_of(selection.counter).visitors


def _read_visitors(keys: Collection[ObjectKey], selection: Selection) -> dict[ObjectKey, int]:
    """Return the visitors of the period by object; nothing if they cannot be read."""
    if not keys or not shows_visitors(selection):
        return {}
    days = selection.period.first_day, selection.period.last_day
    ranges = {key: (CounterKey(*key, selection.counter), *days) for key in keys}
    try:
        found = get_visitors_of_ranges(ranges.values())
    except BufferUnavailable:
        return {}
    return {key: int(found[wanted]) for key, wanted in ranges.items()}
