"""Rank the objects of whole models by their hits in the tables, without loading them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from django_hitcount.counters.days import day_of, list_days
from django_hitcount.counters.names import check_counter
from django_hitcount.counters.rankings import (
    RankedKey,
    Weights,
    check_limit,
    weigh_days,
    weigh_trend,
)
from django_hitcount.db.ranking_scopes import Scope
from django_hitcount.db.rankings import can_read_heads, read_heads, read_table

FEWEST_ROWS = 100
"""
Rows to read of each list. If they prove too few objects, the whole table is summed up.

Five times as many as read_rankings() reads at first: a report must not cost many queries.
"""


def rank_objects(
    content_type_ids: Iterable[int],
    limit: int,
    *,
    counter: str,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
) -> list[RankedKey]:
    """
    Return the objects with the most hits in the tables, those with the most first.

    Does not load the objects: some may have been deleted since.

    Args:
        content_type_ids: of the models whose objects are ranked together.
        limit: how many to return.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        first_day, last_day: the range of days, both included. Without them, all hits count.

    Raises InvalidRanking, UnknownCounter or InvalidDay.

    Costs a query, whatever the number of models, and another one if many objects have nearly as
    many hits.
    """
    weights = weigh_days(list_days(first_day, last_day)) if first_day and last_day else None
    return _rank_first(content_type_ids, limit, counter, weights)


def rank_trending(
    content_type_ids: Iterable[int], limit: int, *, counter: str, half_life_days: float
) -> list[RankedKey]:
    """As rank_objects(), with the scores of trending(), in units of 1/TREND_UNIT."""
    return _rank_first(content_type_ids, limit, counter, weigh_trend(day_of(), half_life_days))


def _rank_first(
    content_type_ids: Iterable[int], limit: int, counter: str, weights: Weights | None
) -> list[RankedKey]:
    check_limit(limit)
    scope = Scope(
        content_type_ids=[*content_type_ids],
        counter=check_counter(counter),
        weights=weights,
        sums_uncompacted=True,
    )
    if not scope.content_type_ids:
        return []
    depth = max(FEWEST_ROWS, 2 * limit)
    if can_read_heads(scope, depth):
        ranking = read_heads(scope, depth)
        if len(ranking.keys) >= limit or ranking.is_complete:
            return [*ranking.keys[:limit]]
    return [*read_table(scope, limit).keys]
