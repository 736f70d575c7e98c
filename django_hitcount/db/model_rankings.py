"""
Rank the objects of whole models by the hits of a period and by their change since the one before.

The objects are not loaded: some may have been deleted since.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.names import check_counter
from django_hitcount.counters.rankings import RankedKey, check_limit, prove, weigh_days
from django_hitcount.db.ranking_heads import find_heads, select_heads, split_rows
from django_hitcount.db.ranking_scopes import (
    Scope,
    match_scope,
    read_rows,
    sum_hits,
    sum_hits_before,
)
from django_hitcount.db.rankings import bytewise, can_read_heads
from django_hitcount.db.spooled_rows import spool_rows
from django_hitcount.db.sql import Sql

HEAD_ROWS = 100
"""
Rows to read of each list. If they do not prove who is at the top, the whole table is summed up.

Five times as many as read_rankings() reads at first: a report must not cost many queries.
"""


class Order(StrEnum):
    """What a ranking orders objects by, the most first. Those with 0 or less are left out."""

    TOP = "hits"
    RISING = "hits - hits_before"
    FALLING = "hits_before - hits"


class ComparedKey(NamedTuple):
    """An object, its hits in a period, and those in the period before."""

    object_key: ObjectKey
    hits: int
    hits_before: int

    def score(self, order: Order) -> int:
        """Return what a ranking orders the object by."""
        change = self.hits - self.hits_before
        return {Order.TOP: self.hits, Order.RISING: change, Order.FALLING: -change}[order]


Rankings = dict[Order, list[ComparedKey]]


class Comparison(NamedTuple):
    """The first objects of each ranking."""

    top: Sequence[ComparedKey]
    rising: Sequence[ComparedKey]
    falling: Sequence[ComparedKey]
    is_certain: bool = True
    """Whether no object was left out that has risen or fallen as much."""


def compare_objects(scope: Scope, limit: int) -> Comparison:
    """
    Return the first ``limit`` objects of each ranking of a scope; see scope_of_periods().

    ``top`` is exact. The others rank the objects that are among the first rows of a list: those
    with the most hits of a day, or with the most hits that are not compacted.

    Costs a query, whatever the number of models, and another one if many objects have nearly as
    many hits.

    Raises InvalidRanking.
    """
    check_limit(limit)
    if not scope.content_type_ids:
        return Comparison([], [], [])
    orders = [*Order] if scope.before else [Order.TOP]
    if can_read_heads(scope, HEAD_ROWS):
        found, unproven = _read_heads(scope, limit, orders)
        if Order.TOP in unproven:
            found |= _read_tables(scope, limit, [Order.TOP])
    else:
        found, unproven = _read_tables(scope, limit, orders), set()
    return Comparison(
        top=found[Order.TOP],
        rising=found.get(Order.RISING, []),
        falling=found.get(Order.FALLING, []),
        is_certain=unproven <= {Order.TOP},
    )


def scope_of_periods(
    content_type_ids: Sequence[int],
    *,
    counter: str,
    days: Sequence[datetime.date],
    before: Sequence[datetime.date],
) -> Scope:
    """
    Return what to rank: a counter of some models, which are ranked together.

    ``days`` are those of the period, and ``before`` those that they are compared with, if any. Days
    of each follow each other. Raises UnknownCounter.
    """
    return Scope(
        content_type_ids=content_type_ids,
        counter=check_counter(counter),
        weights=weigh_days(days),
        before=before,
        sums_uncompacted=True,
    )


def stream_objects(scope: Scope, order: Order) -> Iterator[ComparedKey]:
    """
    Yield all objects of a ranking in its order.

    Costs a query that sums up all rows of the scope, and no memory.
    """
    if scope.content_type_ids:
        for rows in spool_rows(*_select_table(scope, order)):
            yield from _to_keys(rows)


def _read_heads(scope: Scope, limit: int, orders: Sequence[Order]) -> tuple[Rankings, set[Order]]:
    """Rank the objects in the first rows of each list, and say which rankings are not proven."""
    candidates, ends = split_rows(read_rows(*select_heads(scope, HEAD_ROWS)))
    keys = _to_keys(candidates)
    found, unproven = {}, set()
    for order in orders:
        found[order] = _rank(keys, order)[:limit]
        # An object that is in no head of a period has at most that bound more than in the other.
        heads = find_heads(scope, ends, is_before=order is Order.FALLING)
        scores = (RankedKey(key.object_key, key.score(order)) for key in keys)
        ranking = prove(scores, heads, depth=HEAD_ROWS)
        if not ranking.is_complete and len(ranking.keys) < limit:
            unproven.add(order)
    return found, unproven


def _read_tables(scope: Scope, limit: int, orders: Sequence[Order]) -> Rankings:
    """Rank all objects. Costs a query."""
    parts = [_select_table(scope, order, limit) for order in orders]
    rows = read_rows(
        " UNION ALL ".join(
            f"SELECT part.*, {number} AS ranking FROM ({sql}) part"
            for number, (sql, _) in enumerate(parts)
        ),
        [param for _, params in parts for param in params],
    )
    return {
        order: _rank(_to_keys(row[:4] for row in rows if row[4] == number), order)
        for number, order in enumerate(orders)
    }


def _select_table(scope: Scope, order: Order, limit: int | None = None) -> Sql:
    """Select the objects of a ranking by the sums of all rows."""
    hits, hits_params = sum_hits(scope)
    before, before_params = sum_hits_before(scope)
    where, where_params = match_scope(scope)
    sql = (
        "SELECT content_type_id, object_id, hits, hits_before FROM ("
        f"SELECT content_type_id, object_id, {hits} AS hits, {before} AS hits_before "
        f"FROM {scope.table} hit WHERE {where} GROUP BY content_type_id, object_id) sums "
        f"WHERE {order.value} > 0 "
        f"ORDER BY {order.value} DESC, content_type_id, {bytewise('object_id')}"
    )
    return f"{sql} LIMIT {limit}" if limit else sql, hits_params + before_params + where_params


def _to_keys(rows: Iterable[Any]) -> list[ComparedKey]:
    return [
        ComparedKey((content_type_id, object_id), int(hits), int(before))
        for content_type_id, object_id, hits, before in rows
    ]


def _rank(keys: Iterable[ComparedKey], order: Order) -> list[ComparedKey]:
    """Sort objects as sort_keys() does, and leave out those that are not in a ranking."""
    ranked = [key for key in keys if key.score(order) > 0]
    return sorted(ranked, key=lambda key: (-key.score(order), key.object_key))
