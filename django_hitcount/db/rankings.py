"""
Rank objects by their hits in the tables.

An index sorts the rows of slot 0 by hits, and apart from them those of all other slots. Over a
range of days, each day has these two lists. If the rows of other slots are few, they are summed up
instead, and the sums sorted.

The objects are not loaded: some may have been deleted since.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.db import connections

from django_hitcount.counters.rankings import Order, RankedKey, Ranking, rank_keys
from django_hitcount.db.ranking_heads import read_heads, to_keys
from django_hitcount.db.ranking_scopes import (
    Scope,
    match_scope,
    sum_hits,
    sum_hits_before,
)
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.sql import Sql, read_rows, spool_rows

FEWEST_ROWS = 20
"""Rows to read of each list at first. If they prove too few objects, four times as many follow."""

ROWS_OF_REPORTS = 100
"""
Rows to read of each list for a report. If they prove too little, the whole table is summed up.

Five times as many as FEWEST_ROWS: a report must not cost many queries.
"""

MOST_ROWS = 12_800
"""Rows to read of a list."""

MOST_ROWS_OF_ALL_LISTS = 400_000
"""To sum up the whole table is about as fast as to read more."""

IDS_PER_STATEMENT = 1000
"""Objects whose hits one statement reads."""

Rankings = dict[Order, Ranking]


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
        ranking = _read_rankings(scope, size, [Order.TOP])[Order.TOP]
        yield ranking
        is_complete, size = ranking.is_complete, 4 * size
        scope = replace(scope, sums_uncompacted=True)


def compare_objects(scope: Scope, limit: int) -> Rankings:
    """
    Return the rankings of each order, also of those that need a period before, if there is one.

    The first ``limit`` objects of Order.TOP are certain. Of the others, only objects among the
    first rows of a list are ranked: those with the most hits of a day, or with the most hits that
    are not compacted.

    Costs a query, whatever the number of models, and another one if many objects have nearly as
    many hits.
    """
    found = dict.fromkeys(Order, Ranking([], is_complete=True))
    if scope.content_type_ids:
        orders = [*Order] if scope.before else [Order.TOP]
        found |= _read_rankings(replace(scope, sums_uncompacted=True), ROWS_OF_REPORTS, orders)
        if not found[Order.TOP].proves(limit):
            found |= _read_table(scope, limit, [Order.TOP])
    return found


def stream_objects(scope: Scope, order: Order) -> Iterator[RankedKey]:
    """
    Yield all objects of a ranking in its order.

    Costs a query that sums up all rows of the scope, and no memory.
    """
    if scope.content_type_ids:
        for rows in spool_rows(*_select_table(scope, order)):
            yield from (key for key in to_keys(rows) if key.score(order) > 0)


def rank_these(scope: Scope, object_ids: Sequence[str]) -> list[RankedKey]:
    """Rank those of some objects that have hits. Costs a query per thousand."""
    found = []
    for start in range(0, len(object_ids), IDS_PER_STATEMENT):
        ids = object_ids[start : start + IDS_PER_STATEMENT]
        sql, params = _select_sums(scope, f"AND object_id IN ({', '.join(['%s'] * len(ids))})")
        found += to_keys(read_rows(sql, [*params, *ids]))
    return rank_keys(found)


def _read_rankings(scope: Scope, size: int, orders: Sequence[Order]) -> Rankings:
    """
    Rank the objects in the first ``size`` rows of each list; or the first ``size`` of all objects,
    if there are so many lists that this is as fast.
    """
    sorted_by_index = sum(not of.is_summed for of in scope.lists())
    reads_heads = size <= min(MOST_ROWS, MOST_ROWS_OF_ALL_LISTS // sorted_by_index)
    return (read_heads if reads_heads else _read_table)(scope, size, orders)


def _read_table(scope: Scope, size: int, orders: Sequence[Order]) -> Rankings:
    """
    Return the first ``size`` objects of each ranking. Costs a query that sums up all hits.

    A ranking is complete if it has fewer.
    """
    parts = [_select_table(scope, order, size) for order in orders]
    rows = read_rows(
        " UNION ALL ".join(
            f"SELECT part.*, {number} AS ranking FROM ({sql}) part"
            for number, (sql, _) in enumerate(parts)
        ),
        [param for _, params in parts for param in params],
    )
    found = {}
    for number, order in enumerate(orders):
        keys = rank_keys(to_keys(row[:4] for row in rows if row[4] == number), order)
        found[order] = Ranking(keys, is_complete=len(keys) < size)
    return found


def _select_table(scope: Scope, order: Order, limit: int | None = None) -> Sql:
    """
    Select the objects of a ranking by the sums of all rows.

    For the most hits without a period before, also selects the objects with 0 or less, which come
    last: they are few, and to leave them out would take a second sum of each object.
    """
    sql, params = _select_sums(scope)
    if scope.before or order is not Order.TOP:
        sql = f"SELECT * FROM ({sql}) sums WHERE {order.value} > 0"
    sql += f" ORDER BY {order.value} DESC, content_type_id, {_bytewise('object_id')}"
    return f"{sql} LIMIT {limit}" if limit else sql, params


def _select_sums(scope: Scope, condition: str = "") -> Sql:
    """Select the objects of a scope, and their hits in its periods."""
    hits, hits_params = sum_hits(scope)
    before, before_params = sum_hits_before(scope)
    where, where_params = match_scope(scope)
    return (
        f"SELECT content_type_id, object_id, {hits} AS hits, {before} AS hits_before "
        f"FROM {scope.table} hit WHERE {where} {condition} GROUP BY content_type_id, object_id"
    ), hits_params + before_params + where_params


def _bytewise(column: str) -> str:
    """Return a column as a ranking orders by it. Only PostgreSQL would use a language."""
    is_postgresql = connections[hits_alias()].vendor == "postgresql"
    return f'{column} COLLATE "C"' if is_postgresql else column
