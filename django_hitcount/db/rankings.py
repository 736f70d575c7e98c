"""
Rank objects by their hits in the tables.

An index sorts the rows of slot 0 by hits, and apart from them those of all other slots. Over a
range of days, each day has these two lists. If the rows of other slots are few, they are summed up
instead, and the sums sorted.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.db import connections

from django_hitcount.counters.rankings import RankedKey, Ranking, sort_keys
from django_hitcount.db.ranking_heads import Rows, rank_heads, select_heads, to_keys
from django_hitcount.db.ranking_scopes import Scope, match_scope, read_rows, sum_hits
from django_hitcount.db.routing import hits_alias

FEWEST_ROWS = 20
"""Rows to read of each list at first. If they prove too few objects, four times as many follow."""

MOST_ROWS = 12_800
"""Rows to read of a list."""

MOST_ROWS_OF_ALL_LISTS = 400_000
"""To sum up the whole table is about as fast as to read more."""

MOST_LISTS_IN_SQLITE = 490
"""SQLite accepts 500 parts of a UNION, unless it was built with another limit."""

IDS_PER_STATEMENT = 1000
"""Objects whose hits one statement reads."""


class RankingStatement(NamedTuple):
    """A statement, and how to rank the objects in its rows."""

    sql: str
    params: Sequence[Any]
    rank: Callable[[Rows], Ranking]


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
    lists = scope.lists()
    if len(lists) > MOST_LISTS_IN_SQLITE and connections[hits_alias()].vendor == "sqlite":
        return False
    sorted_by_index = sum(not of.is_summed for of in lists)
    return depth <= min(MOST_ROWS, MOST_ROWS_OF_ALL_LISTS // sorted_by_index)


def read_heads(scope: Scope, depth: int) -> Ranking:
    """
    Rank the objects in the first ``depth`` rows of each list, as far as their order is sure.

    Costs a query.
    """
    return read_together([rank_by_heads(scope, depth)])[0]


def read_table(scope: Scope, size: int) -> Ranking:
    """
    Rank the first ``size`` objects. Costs a query that sums up the hits of all objects.

    The ranking is complete if there are fewer.
    """
    return read_together([rank_by_table(scope, size)])[0]


def read_together(statements: Sequence[RankingStatement]) -> list[Ranking]:
    """Read several rankings, all from one instant. Costs a query."""
    if len(statements) == 1:
        (only,) = statements
        return [only.rank(read_rows(only.sql, only.params))]
    rows = read_rows(
        " UNION ALL ".join(
            f"SELECT {number} AS ranking, part.* FROM ({statement.sql}) part"
            for number, statement in enumerate(statements)
        ),
        [param for statement in statements for param in statement.params],
    )
    return [
        statement.rank([row for ranking, *row in rows if ranking == number])
        for number, statement in enumerate(statements)
    ]


def rank_by_heads(scope: Scope, depth: int) -> RankingStatement:
    """Return the statement of read_heads()."""
    sql, params = select_heads(scope, depth)
    return RankingStatement(sql, params, lambda rows: rank_heads(rows, scope, depth))


def rank_by_table(scope: Scope, size: int) -> RankingStatement:
    """Return the statement of read_table(). Its rows have the columns of rank_by_heads()."""
    score, score_params = sum_hits(scope)
    where, where_params = match_scope(scope)
    is_postgresql = connections[hits_alias()].vendor == "postgresql"
    bytewise = ' COLLATE "C"' if is_postgresql else ""  # Elsewhere, the column has it already.
    sql = (
        f"SELECT 0 AS list, content_type_id, object_id, {score} AS score, 0 AS number_of_rows "
        f"FROM {scope.table} hit WHERE {where} GROUP BY content_type_id, object_id "
        f"ORDER BY score DESC, content_type_id, object_id{bytewise} LIMIT {size}"
    )

    def rank(rows: Rows) -> Ranking:
        # To leave out those without hits in SQL would take a second sum of each object.
        keys = [key for key in to_keys(row[1:4] for row in rows) if key.hits > 0]
        return Ranking(sort_keys(keys), is_complete=len(keys) < size)

    return RankingStatement(sql, score_params + where_params, rank)


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
