"""
Rank objects by their hits in the tables.

An index sorts the rows of slot 0 by hits, and apart from them those of all other slots. Over a
range of days, each day has these two lists. If the rows of other slots are few, they are summed up
instead, and the sums sorted.

The objects are not loaded: some may have been deleted since.
"""

# ruff: noqa: S608 - the parts of the statements are our own.
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django_hitcount.counters import split
from django_hitcount.counters.rankings import (
    Head,
    Order,
    RankedKey,
    Ranking,
    Scope,
    prove,
    rank_keys,
)
from django_hitcount.db.ranking_selects import (
    FEW_UNCOMPACTED,
    NO_LIST,
    select_heads,
    select_sums,
    select_table,
)
from django_hitcount.db.sql import read_rows, spool_rows

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
        for rows in spool_rows(select_table(scope, order), {"counter": scope.counter}):
            yield from (key for key in _to_keys(rows) if key.score(order) > 0)


def rank_these(scope: Scope, object_ids: Sequence[str]) -> list[RankedKey]:
    """Rank those of some objects that have hits. Costs a query per thousand."""
    found = []
    for some in split(object_ids, IDS_PER_STATEMENT):
        ids = {f"id_{n}": pk for n, pk in enumerate(some)}
        sql = select_sums(scope, f"object_id IN ({', '.join(f'%({name})s' for name in ids)})")
        found += _to_keys(read_rows(sql, {"counter": scope.counter, **ids}))
    return rank_keys(found)


def _read_rankings(scope: Scope, size: int, orders: Sequence[Order]) -> Rankings:
    """
    Rank the objects in the first ``size`` rows of each list; or the first ``size`` of all objects,
    if there are so many lists that this is as fast.
    """
    sorted_by_index = sum(not of.is_summed for of in scope.lists())
    reads_heads = size <= min(MOST_ROWS, MOST_ROWS_OF_ALL_LISTS // sorted_by_index)
    return (_read_heads if reads_heads else _read_table)(scope, size, orders)


def _read_heads(scope: Scope, depth: int, orders: Sequence[Order]) -> Rankings:
    """
    Rank the objects in the first ``depth`` rows of each list, as far as their order is certain.

    Costs a query.
    """
    rows = read_rows(select_heads(scope, depth), {"counter": scope.counter})
    # Of the rows of an object, one has its sums.
    keys = _to_keys(row[1:3] + row[5:] for row in rows if row[5] is not None)
    heads = [*_find_heads(scope, depth, rows)]
    return {
        order: prove(
            keys, [of for of in heads if of.row_list.is_before == (order is Order.FALLING)], order
        )
        for order in orders
    }


def _find_heads(scope: Scope, depth: int, rows: Iterable[Sequence[Any]]) -> Iterator[Head]:
    """Yield the heads that bound the hits of objects in none of them."""
    highest_slot, uncompacted = 1, 0
    lists = scope.lists()
    ends: dict[int, int] = {}
    for number, _, _, hits, place, *_ in rows:
        if number == NO_LIST:
            highest_slot, uncompacted = hits, place
        elif place == depth:
            ends[number] = int(hits)
    has_sums = scope.weights is not None and uncompacted <= FEW_UNCOMPACTED
    for number, last_hits in ends.items():
        row_list = lists[number]
        is_sure = row_list.is_compacted or row_list.is_summed
        if is_sure or not has_sums:  # Otherwise the sums bound the same hits, and better.
            # An object has one row in slot 0, elsewhere one for each slot, and one of corrections.
            yield Head(row_list, last_hits, 1 if is_sure else int(highest_slot) + 1)


def _read_table(scope: Scope, size: int, orders: Sequence[Order]) -> Rankings:
    """
    Return the first ``size`` objects of each ranking. Costs a query that sums up all hits.

    A ranking is complete if it has fewer.
    """
    parts = [
        f"SELECT part.*, {number} AS ranking FROM ({select_table(scope, order, size)}) part"
        for number, order in enumerate(orders)
    ]
    rows = read_rows(" UNION ALL ".join(parts), {"counter": scope.counter})
    found = {}
    for number, order in enumerate(orders):
        keys = rank_keys(_to_keys(row[:4] for row in rows if row[4] == number), order)
        found[order] = Ranking(keys, is_complete=len(keys) < size)
    return found


def _to_keys(rows: Iterable[Sequence[Any]]) -> list[RankedKey]:
    """Return ranked objects of content type ids, object ids, hits, and hits before."""
    return [
        RankedKey((content_type_id, object_id), int(hits), int(before))
        for content_type_id, object_id, hits, before in rows
    ]
