"""
The SELECTs of a ranking. Their only parameters are the counter, and what the caller adds.

One statement reads the heads of all lists, and all hits of the objects in them, so both are from
one instant: if two read them, a compaction in between could move hits from a list whose end bounds
them to one whose end does not.
"""

# ruff: noqa: S608 - the parts of the statements are our own; the counter is a parameter.
from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import replace

from django.db import connections

from django_hitcount.counters.rankings import Order, RowList, Scope
from django_hitcount.db.slots import CORRECTION_SLOT
from django_hitcount.db.tables import DailyHitSlot, HitSlot, hits_alias
from django_hitcount.db.tables.hits import match_uncompacted

FEW_UNCOMPACTED = 2000
"""How many rows that are not compacted are summed up at first, over a range of days."""

NO_LIST = -1
"""
In the column for the number of a list: the row is about all rows that are not compacted.

It has their highest slot of hits and, over a range of days, how many they are, up to one more than
FEW_UNCOMPACTED.
"""


def _vendor() -> str:
    return connections[hits_alias()].vendor


def select_table(scope: Scope, order: Order, limit: int | None = None) -> str:
    """
    Select the objects of a ranking by the sums of all rows.

    For the most hits without a period before, also selects the objects with 0 or less, which come
    last: they are few, and to leave them out would take a second sum of each object.
    """
    sql = select_sums(scope)
    if scope.before or order is not Order.TOP:
        sql = f"SELECT * FROM ({sql}) sums WHERE {order.value} > 0"
    # Byte by byte, as a ranking orders them. Only PostgreSQL would use a language.
    object_id = 'object_id COLLATE "C"' if _vendor() == "postgresql" else "object_id"
    sql += f" ORDER BY {order.value} DESC, content_type_id, {object_id}"
    return f"{sql} LIMIT {limit}" if limit else sql


def select_sums(scope: Scope, condition: str = "1 = 1") -> str:
    """Select the objects of a scope, and their hits in its periods."""
    return (
        f"SELECT content_type_id, object_id, {_sum_hits(scope)} AS hits, "
        f"{_sum_hits(scope, is_before=True)} AS hits_before FROM {_table(scope)} hit "
        f"WHERE {_match(scope)} AND {condition} GROUP BY content_type_id, object_id"
    )


def select_heads(scope: Scope, depth: int) -> str:
    """
    Select the first rows of each list: its number, and the object and its hits in the row.

    One row of each object has the sums of its hits in each period, too.
    """
    lists = [*enumerate(scope.lists())]
    heads = _select_rows(scope, [of for of in lists if not of[1].is_summed], depth)
    heads += [_select_summed(scope, *of, depth) for of in lists if of[1].is_summed]
    # SQLite takes no LIMIT in a part of a union.
    start = "SELECT * FROM (" if _vendor() == "sqlite" else "("
    union = " UNION ALL ".join(f"{start}{head})" for head in heads)
    sums = [f"CASE WHEN number = 1 THEN {_sum_of_head(of)} END" for of in scope.periods()]
    return (
        f"SELECT list, content_type_id, object_id, hits, place, {', '.join([*sums, '0'][:2])} "
        "FROM (SELECT heads.*, ROW_NUMBER() OVER (PARTITION BY list ORDER BY hits DESC) AS place, "
        "ROW_NUMBER() OVER (PARTITION BY content_type_id, object_id) AS number "
        f"FROM ({union}) heads) head WHERE number = 1 OR place = {depth}"
        f"{_select_uncompacted(scope)}"
    )


def _sum_of_head(scope: Scope) -> str:
    """
    Return the sum of the hits of the object of a head.

    MySQL and MariaDB have an index with all that a sum needs. It begins with ``is_compacted``: a
    sum over both values would not use it.
    """
    conditions = (
        ["1 = 1"] if _vendor() != "mysql" else ["is_compacted = True", "is_compacted = False"]
    )
    return " + ".join(
        f"COALESCE((SELECT {_sum_hits(scope)} FROM {_table(scope)} hit WHERE {_match(scope)} "
        "AND hit.content_type_id = head.content_type_id AND hit.object_id = head.object_id "
        f"AND {condition}), 0)"
        for condition in conditions
    )


def _select_uncompacted(scope: Scope) -> str:
    """Return one more part of a UNION, if there are heads of rows that are not compacted."""
    if scope.sums_uncompacted:
        return ""
    rows = f"FROM {_table(scope)} WHERE {match_uncompacted(connections[hits_alias()])}"
    highest = f"SELECT MAX(slot) {rows} AND slot < {CORRECTION_SLOT}"
    count = "0" if scope.weights is None else _count_uncompacted(scope)
    return f" UNION ALL SELECT {NO_LIST}, NULL, NULL, COALESCE(({highest}), 0), {count}, NULL, 0"


def _count_uncompacted(scope: Scope) -> str:
    """Return an expression for the number of rows that are not compacted, as far as it matters."""
    rows = f"FROM {_table(scope)} WHERE {match_uncompacted(connections[hits_alias()])}"
    return f"(SELECT COUNT(*) FROM (SELECT 1 {rows} LIMIT {FEW_UNCOMPACTED + 1}) uncompacted)"


def _select_summed(scope: Scope, number: int, row_list: RowList, depth: int) -> str:
    """Return a SELECT of the objects with the most hits that are not compacted, or of none."""
    uncompacted = match_uncompacted(connections[hits_alias()])
    if_few = (
        "" if scope.sums_uncompacted else f"AND {_count_uncompacted(scope)} <= {FEW_UNCOMPACTED} "
    )
    period = scope.periods()[row_list.is_before]
    where = _match(replace(period, content_type_ids=[row_list.content_type_id]))
    if _vendor() == "sqlite":
        # By an index of days, it would read all rows of the days. It uses none for an expression.
        where = where.replace("hit.day", "+hit.day")
    return (
        f"SELECT {number} AS list, content_type_id, object_id, {_sum_hits(period)} AS score "
        f"FROM {_table(scope)} hit WHERE {where} AND {uncompacted} {if_few}"
        f"GROUP BY content_type_id, object_id ORDER BY score DESC LIMIT {depth}"
    )


def _select_rows(scope: Scope, lists: Sequence[tuple[int, RowList]], depth: int) -> list[str]:
    """
    Return SELECTs of the first rows of lists that an index sorts.

    PostgreSQL plans each part of a union, which takes 1 ms. SQLite takes 500 parts of a union, and
    has no LATERAL. So there, values name the lists in one SELECT.
    """
    vendor = _vendor()
    cast = "::date" if vendor == "postgresql" else ""
    values = [
        (number, of.content_type_id, _literal(of.day) + cast, of.is_compacted)
        for number, of in lists
    ]
    on_day = "" if scope.weights is None else "AND day = {2} "
    rows = (
        f"FROM {_table(scope)} WHERE content_type_id = {{1}} AND counter = %(counter)s "
        f"{on_day}AND is_compacted = {{3}} ORDER BY hits DESC LIMIT {depth}"
    )
    columns = "content_type_id, object_id, hits"
    if vendor == "mysql":
        return [f"SELECT {of[0]} AS list, {columns} {rows.format(*of)}" for of in values]
    rows = rows.format("", "list.model", "list.day", "list.is_compacted")
    head = f"LATERAL (SELECT {columns} {rows}) head"
    if vendor == "sqlite":
        head = f"{_table(scope)} head ON head.id IN (SELECT id {rows})"
    named = ", ".join(f"({', '.join(map(str, of))})" for of in values)
    sql = (
        f"WITH list (number, model, day, is_compacted) AS (VALUES {named}) "
        f"SELECT list.number AS list, {columns} FROM list CROSS JOIN {head}"
    )
    return [sql]


def _table(scope: Scope) -> str:
    """Return the name of the table with the hits."""
    return (HitSlot if scope.weights is None else DailyHitSlot)._meta.db_table


def _sum_hits(scope: Scope, *, is_before: bool = False) -> str:
    """Return the sum of the hits of an object in a period, each with the weight of its day."""
    weights = scope.weights or {}
    if is_before and not scope.before:
        return "0"
    if scope.before:
        is_in = _match_days(scope.before if is_before else weights)
        return f"SUM(CASE WHEN {is_in} THEN hit.hits ELSE 0 END)"
    if {*weights.values()} <= {1}:
        return "SUM(hit.hits)"
    # As decimals, since the product may be too large for an integer.
    return f"SUM(CAST(hit.hits AS DECIMAL(20, 0)) * {_choose_weight(sorted(weights.items()))})"


def _choose_weight(weights: Sequence[tuple[datetime.date, int]]) -> str:
    """Return the weight of a row. It takes five comparisons for a month: one a day is slow."""
    if len(weights) == 1:
        return str(weights[0][1])
    middle = len(weights) // 2
    return (
        f"CASE WHEN hit.day < {_literal(weights[middle][0])} "
        f"THEN {_choose_weight(weights[:middle])} ELSE {_choose_weight(weights[middle:])} END"
    )


def _match(scope: Scope) -> str:
    """Return a condition for the rows with the hits of a scope."""
    models = ", ".join(map(str, scope.content_type_ids))
    where = f"hit.content_type_id IN ({models}) AND hit.counter = %(counter)s"
    return f"{where} AND {_match_days([*scope.weights, *scope.before])}" if scope.weights else where


def _match_days(days: Collection[datetime.date]) -> str:
    return f"hit.day BETWEEN {_literal(min(days))} AND {_literal(max(days))}"


def _literal(day: datetime.date | None) -> str:
    """Return a day as each database takes it."""
    return f"'{day.isoformat()}'" if day else "NULL"
