"""Rank the objects of whole models by their hits in the tables, without loading them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from django_hitcount.counters.days import day_of, list_days
from django_hitcount.counters.names import check_counter
from django_hitcount.counters.rankings import (
    RankedKey,
    Ranking,
    check_limit,
    weigh_days,
    weigh_trend,
)
from django_hitcount.db.ranking_scopes import Scope
from django_hitcount.db.rankings import (
    can_read_heads,
    rank_by_heads,
    rank_by_table,
    read_together,
)

FEWEST_ROWS = 100
"""
Rows to read of each list. If they prove too few objects, the whole table is summed up.

Five times as many as read_rankings() reads at first: a report must not cost many queries.
"""


class ModelRankings(NamedTuple):
    """Two rankings of the same models."""

    top: list[RankedKey]
    """The objects with the most hits, those with the most first."""

    trending: list[RankedKey]
    """Those with the highest scores of trending(), in units of 1/TREND_UNIT."""


def rank_objects(
    content_type_ids: Sequence[int],
    limit: int,
    *,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
    half_life_days: float,
) -> ModelRankings:
    """
    Rank the objects of some models by their hits in the tables, and by how recent these are.

    Does not load the objects: some may have been deleted since.

    Args:
        content_type_ids: of the models whose objects are ranked together.
        limit: how many objects to return.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        first_day, last_day: the range of days of ``top``, both included.
        half_life_days: after how many days a hit counts half in ``trending``.

    Raises InvalidRanking, UnknownCounter or InvalidDay.

    Costs a query, whatever the number of models, and another one if many objects have nearly as
    many hits.
    """
    check_limit(limit)
    check_counter(counter)
    scopes = [
        Scope(
            content_type_ids=content_type_ids,
            counter=counter,
            weights=weights,
            sums_uncompacted=True,
        )
        for weights in (
            weigh_days(list_days(first_day, last_day)),
            weigh_trend(day_of(), half_life_days),
        )
    ]
    if not content_type_ids:
        return ModelRankings([], [])
    return ModelRankings(*([*ranking.keys[:limit]] for ranking in _rank_together(scopes, limit)))


def _rank_together(scopes: Sequence[Scope], limit: int) -> list[Ranking]:
    """Rank the first ``limit`` objects of each scope, in one statement or two."""
    depth = max(FEWEST_ROWS, 2 * limit)
    rankings = read_together(
        [
            rank_by_heads(scope, depth)
            if can_read_heads(scope, depth)
            else rank_by_table(scope, limit)
            for scope in scopes
        ]
    )
    unproven = [
        number
        for number, ranking in enumerate(rankings)
        if len(ranking.keys) < limit and not ranking.is_complete
    ]
    if unproven:
        tables = read_together([rank_by_table(scopes[number], limit) for number in unproven])
        for number, ranking in zip(unproven, tables, strict=True):
            rankings[number] = ranking
    return rankings
