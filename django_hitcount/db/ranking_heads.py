"""
Statements that read the heads of all lists of a ranking, and all hits of the objects in them.

One statement reads both, so both are from one instant: if two statements read them, a compaction in
between could move hits from a list whose end bounds them to one whose end does not.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db import connections

from django_hitcount.counters.rankings import Head, Order, RankedKey, Ranking, prove
from django_hitcount.db.fields import match_uncompacted
from django_hitcount.db.ranking_scopes import (
    RowList,
    Scope,
    match_scope,
    sum_hits,
    sum_hits_before,
    to_param,
)
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.slots import CORRECTION_SLOT
from django_hitcount.db.sql import Sql, read_rows

FEW_UNCOMPACTED = 2000
"""How many rows that are not compacted are summed up at first, over a range of days."""

NO_LIST = -1
"""
In the column for the number of a list: the row is about all rows that are not compacted.

It has their highest slot of hits and, over a range of days, how many they are, up to one more than
FEW_UNCOMPACTED.
"""

Rows = Sequence[Any]
"""What a statement returned."""

Ends = dict[int, tuple[Any, Any]]
"""For each list with rows: the hits of the last row that was read, and how many were read."""


def read_heads(scope: Scope, depth: int, orders: Iterable[Order]) -> dict[Order, Ranking]:
    """
    Rank the objects in the first ``depth`` rows of each list, as far as their order is certain.

    Costs a query.
    """
    if _is_mariadb():
        candidates, ends = _read_sums(read_rows(*_select_with_sums(scope, depth)))
    else:
        rows = read_rows(*_select_and_join(scope, depth))
        candidates = [row[1:5] for row in rows if row[0] is None]
        ends = {number: (hits, n) for number, *_, hits, _, n in rows if number is not None}
    keys = to_keys(candidates)
    rankings = {}
    for order in orders:
        heads = _find_heads(scope, ends, is_before=order is Order.FALLING)
        rankings[order] = prove(keys, heads, depth=depth, order=order)
    return rankings


def _find_heads(scope: Scope, ends: Ends, *, is_before: bool) -> list[Head]:
    """Return the heads that bound the hits of one of the periods of a scope."""
    highest_slot, uncompacted = ends.get(NO_LIST, (1, 0))
    has_sums = scope.weights is not None and uncompacted <= FEW_UNCOMPACTED
    weights = scope.weights or {}
    found = []
    for number, row_list in enumerate(scope.lists()):
        if number not in ends or row_list.is_before != is_before:
            continue
        is_sure = row_list.is_compacted or row_list.is_summed
        if has_sums and not is_sure:
            continue  # The sums bound the same hits, and better.
        last_hits, count = ends[number]
        # An object has one row in slot 0, and elsewhere one for each slot, and one of corrections.
        most_rows = 1 if is_sure else int(highest_slot) + 1
        # How much a hit in the list counts in the sum of its period.
        weight = 1 if row_list.day is None or is_before else weights[row_list.day]
        found.append(Head(count, int(last_hits), weight, most_rows, row_list.content_type_id))
    return found


def to_keys(rows: Iterable[Sequence[Any]]) -> list[RankedKey]:
    """Return ranked objects of content type ids, object ids, hits, and hits before."""
    return [
        RankedKey((content_type_id, object_id), int(hits), int(before))
        for content_type_id, object_id, hits, before in rows
    ]


def _is_mariadb() -> bool:
    connection: Any = connections[hits_alias()]
    return bool(connection.vendor == "mysql" and connection.mysql_is_mariadb)


def _uncompacted() -> str:
    return match_uncompacted(connections[hits_alias()])


def _select_and_join(scope: Scope, depth: int) -> Sql:
    """Select the heads, and join all rows of their objects."""
    heads, heads_params = _select_heads(scope, depth)
    score, score_params = sum_hits(scope)
    before, before_params = sum_hits_before(scope)
    where, where_params = match_scope(scope)
    sql = (
        f"WITH heads AS ({heads}) "
        "SELECT NULL AS list, hit.content_type_id AS content_type_id, hit.object_id AS object_id, "
        f"{score} AS hits, {before} AS hits_before, NULL AS number_of_rows "
        "FROM (SELECT DISTINCT content_type_id, object_id FROM heads) candidate "
        f"JOIN {scope.table} hit ON hit.content_type_id = candidate.content_type_id "
        f"AND hit.object_id = candidate.object_id AND {where} "
        "GROUP BY hit.content_type_id, hit.object_id "
        "UNION ALL SELECT list, NULL, NULL, MIN(hits), NULL, COUNT(*) FROM heads GROUP BY list"
        f"{_select_uncompacted(scope)}"
    )
    return sql, heads_params + score_params + before_params + where_params


def _select_with_sums(scope: Scope, depth: int) -> Sql:
    """
    Select the heads, each row with the sum of its object.

    MariaDB reads a common table expression anew for each reference. So this sums up the hits of an
    object at the first of its rows. An index has all that a sum needs. It begins with
    ``is_compacted``: a sum over both values would not use it.
    """
    heads, heads_params = _select_heads(scope, depth)
    periods = [scope]
    if scope.before:
        periods = [scope.of_period(is_before=is_before) for is_before in (False, True)]
    sums = [_select_sum(period) for period in periods]
    totals = ", ".join(f"CASE WHEN number = 1 THEN {sql} END" for sql, _ in sums)
    sql = (
        f"SELECT list, content_type_id, object_id, hits, {totals}{'' if scope.before else ', 0'} "
        "FROM (SELECT heads.*, ROW_NUMBER() OVER "
        f"(PARTITION BY content_type_id, object_id) AS number FROM ({heads}) heads) head"
        f"{_select_uncompacted(scope)}"
    )
    return sql, [param for _, params in sums for param in params] + heads_params


def _select_sum(scope: Scope) -> Sql:
    """Return the sum of the hits of the object of a head."""
    score, score_params = sum_hits(scope)
    where, where_params = match_scope(scope)
    parts = [
        f"COALESCE((SELECT {score} FROM {scope.table} hit WHERE {where} "
        "AND hit.content_type_id = head.content_type_id AND hit.object_id = head.object_id "
        f"AND is_compacted = {is_compacted}), 0)"
        for is_compacted in (True, False)
    ]
    return " + ".join(parts), len(parts) * (score_params + where_params)


def _read_sums(rows: Rows) -> tuple[Rows, Ends]:
    candidates = [row[1:3] + row[4:] for row in rows if row[1] is not None and row[4] is not None]
    ends: Ends = {}
    for number, content_type_id, _, hits, total, _ in rows:
        last_hits, count = ends.get(number, (hits, 0))
        if content_type_id is None:  # The row of NO_LIST.
            ends[number] = hits, total
        else:
            ends[number] = min(hits, last_hits), count + 1
    return candidates, ends


def _select_uncompacted(scope: Scope) -> str:
    """Return one more part of a UNION, if there are heads of rows that are not compacted."""
    if scope.sums_uncompacted:
        return ""
    highest = (
        f"SELECT MAX(slot) FROM {scope.table} WHERE {_uncompacted()} AND slot < {CORRECTION_SLOT}"
    )
    count = "0" if scope.weights is None else _count(scope)
    columns = f"COALESCE(({highest}), 0), {f'{count}, 0' if _is_mariadb() else f'NULL, {count}'}"
    return f" UNION ALL SELECT {NO_LIST}, NULL, NULL, {columns}"


def _count(scope: Scope) -> str:
    """Return an expression for the number of rows that are not compacted, as far as it matters."""
    rows = f"SELECT 1 FROM {scope.table} WHERE {_uncompacted()} LIMIT {FEW_UNCOMPACTED + 1}"
    return f"(SELECT COUNT(*) FROM ({rows}) uncompacted)"


def _select_heads(scope: Scope, depth: int) -> Sql:
    """Return a SELECT of the first rows of each list: its number, and the object and its hits."""
    vendor = connections[hits_alias()].vendor
    lists = [*enumerate(scope.lists())]
    in_indexes = [(number, row_list) for number, row_list in lists if not row_list.is_summed]
    summed = [(number, row_list) for number, row_list in lists if row_list.is_summed]
    if vendor == "mysql":
        heads = [_select_rows(scope, number, row_list, depth) for number, row_list in in_indexes]
    else:
        heads = [_select_by_list(scope, in_indexes, depth)]
    heads += [_select_sums(scope, number, row_list, depth) for number, row_list in summed]
    # SQLite takes no LIMIT in a part of a union.
    start = "SELECT * FROM (" if vendor == "sqlite" else "("
    sql = " UNION ALL ".join(f"{start}{head})" for head, _ in heads)
    return sql, [param for _, params in heads for param in params]


def _select_rows(scope: Scope, number: int, row_list: RowList, depth: int) -> Sql:
    """Return a SELECT of the first rows of a list."""
    day = row_list.day
    on_day, params = (" AND day = %s", [to_param(day)]) if day else ("", [])
    return (
        f"SELECT {number} AS list, content_type_id, object_id, hits FROM {scope.table} "
        f"WHERE content_type_id = %s AND counter = %s AND is_compacted = {row_list.is_compacted}"
        f"{on_day} ORDER BY hits DESC LIMIT {depth}"
    ), [row_list.content_type_id, scope.counter, *params]


def _select_sums(scope: Scope, number: int, row_list: RowList, depth: int) -> Sql:
    """Return a SELECT of the objects with the most hits that are not compacted, or of none."""
    if_few = "" if scope.sums_uncompacted else f"AND {_count(scope)} <= {FEW_UNCOMPACTED} "
    part = replace(scope, content_type_ids=[row_list.content_type_id])
    if scope.before:
        part = part.of_period(is_before=row_list.is_before)
    score, score_params = sum_hits(part)
    where, where_params = match_scope(part)
    if connections[hits_alias()].vendor == "sqlite":
        # By an index of days, it would read all rows of the days. It uses none for an expression.
        where = where.replace("hit.day", "+hit.day")
    return (
        f"SELECT {number} AS list, content_type_id, object_id, {score} AS score "
        f"FROM {scope.table} hit WHERE {where} AND {_uncompacted()} {if_few}"
        f"GROUP BY content_type_id, object_id ORDER BY score DESC LIMIT {depth}"
    ), score_params + where_params


def _select_by_list(scope: Scope, lists: Iterable[tuple[int, RowList]], depth: int) -> Sql:
    """
    Return a SELECT of the first rows of several lists, which values name.

    PostgreSQL plans each part of a union, which takes 1 ms. SQLite takes 500 parts of a union, and
    has no LATERAL.
    """
    chosen, is_sqlite = [*lists], connections[hits_alias()].vendor == "sqlite"
    values = ", ".join(
        f"({number}, {row_list.content_type_id}, {'%s' if is_sqlite else '%s::date'}, "
        f"{row_list.is_compacted})"
        for number, row_list in chosen
    )
    on_day = "" if scope.weights is None else "AND day = list.day "
    rows = (
        f"FROM {scope.table} WHERE content_type_id = list.model AND counter = %s "
        f"{on_day}AND is_compacted = list.is_compacted ORDER BY hits DESC LIMIT {depth}"
    )
    head = f"LATERAL (SELECT content_type_id, object_id, hits {rows}) head"
    if is_sqlite:
        head = f"{scope.table} head ON head.id IN (SELECT id {rows})"
    sql = (
        f"WITH list (number, model, day, is_compacted) AS (VALUES {values}) "
        f"SELECT list.number AS list, content_type_id, object_id, hits FROM list CROSS JOIN {head}"
    )
    days = [row_list.day and to_param(row_list.day) for _, row_list in chosen]
    return sql, [*days, scope.counter]
