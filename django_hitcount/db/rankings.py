"""
Rank objects by their hits in the tables.

An index sorts the rows of slot 0 by hits, and apart from them those of all other slots. Over a
range of days, each day has these two lists. If the rows of other slots are few, they are summed up
instead, and the sums sorted.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.db import connections

from django_hitcount.counters.rankings import RankedKey, Ranking, sort_keys
from django_hitcount.db.ranking_heads import rank_heads, select_heads, to_keys
from django_hitcount.db.ranking_scopes import Scope, match_scope, read_rows, sum_hits
from django_hitcount.db.routing import hits_alias

FEWEST_ROWS = 20
"""Rows to read of each list at first. If they prove too few objects, four times as many follow."""

MOST_ROWS = 12_800
"""Rows to read of a list."""

MOST_ROWS_OF_ALL_LISTS = 400_000
"""To sum up the whole table is about as fast as to read more."""

IDS_PER_STATEMENT = 1000
"""Objects whose hits one statement reads."""


def read_rankings(scope: Scope, *, at_least: int) -> Iterator[Ranking]:
    """
    Read rankings that are ever longer. The last one is complete.

    The first one nearly always has ``at_least`` objects, if there are so many. Each is from an
    instant of its own, so use one of them, and not parts of several.

    Costs a query for each.
    """
    size = max(FEWEST_ROWS, 2 * at_least)
    is_complete = False
    while not is_complete:
        read = read_heads if can_read_heads(scope, size) else read_table
        ranking = read(scope, size)
        yield ranking
        is_complete, size = ranking.is_complete, 4 * size
        scope = replace(scope, sums_uncompacted=True)


def can_read_heads(scope: Scope, depth: int) -> bool:
    """Return whether one statement may read the first ``depth`` rows of all lists."""
    sorted_by_index = sum(not of.is_summed for of in scope.lists())
    return depth <= min(MOST_ROWS, MOST_ROWS_OF_ALL_LISTS // sorted_by_index)


def read_heads(scope: Scope, depth: int) -> Ranking:
    """
    Rank the objects in the first ``depth`` rows of each list, as far as their order is sure.

    Costs a query.
    """
    return rank_heads(read_rows(*select_heads(scope, depth)), scope, depth)


def read_table(scope: Scope, size: int) -> Ranking:
    """
    Rank the first ``size`` objects. Costs a query that sums up the hits of all objects.

    The ranking is complete if there are fewer.
    """
    score, score_params = sum_hits(scope)
    where, where_params = match_scope(scope)
    rows = read_rows(
        f"SELECT content_type_id, object_id, {score} AS score "
        f"FROM {scope.table} hit WHERE {where} GROUP BY content_type_id, object_id "
        f"ORDER BY score DESC, content_type_id, {bytewise('object_id')} LIMIT {size}",
        score_params + where_params,
    )
    # To leave out those without hits in SQL would take a second sum of each object.
    keys = [key for key in to_keys(rows) if key.hits > 0]
    return Ranking(sort_keys(keys), is_complete=len(keys) < size)


def bytewise(column: str) -> str:
    """Return a column as a ranking orders by it. Only PostgreSQL would use a language."""
    is_postgresql = connections[hits_alias()].vendor == "postgresql"
    return f'{column} COLLATE "C"' if is_postgresql else column


def rank_these(scope: Scope, object_ids: Sequence[str]) -> list[RankedKey]:
    """Rank those of some objects that have hits. Costs a query per thousand."""
    score, score_params = sum_hits(scope)
    where, where_params = match_scope(scope)
    found = []
    for start in range(0, len(object_ids), IDS_PER_STATEMENT):
        ids = object_ids[start : start + IDS_PER_STATEMENT]
        rows = read_rows(
            f"SELECT content_type_id, object_id, {score} FROM {scope.table} hit "
            f"WHERE {where} AND object_id IN ({', '.join(['%s'] * len(ids))}) "
            "GROUP BY content_type_id, object_id",
            [*score_params, *where_params, *ids],
        )
        found += [key for key in to_keys(rows) if key.hits > 0]
    return sort_keys(found)
