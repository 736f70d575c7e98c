"""
Rank objects by their hits in the tables.

An index sorts the rows of slot 0 by hits, and apart from them those of all other slots. Over a
range of days, each day has these two lists. One statement reads the heads of all lists and all hits
of the objects in them. So both are from one instant: if two statements read them, a compaction in
between could move hits from a list whose end bounds them to one whose end does not.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from django.db import connections

from django_hitcount.counters.rankings import (
    Head,
    RankedKey,
    Ranking,
    Weights,
    prove,
    sort_keys,
)
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DailyHitSlot, HitSlot

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

NO_LIST = -1
"""In the column for the number of a list: the row has the highest slot."""

Ends = dict[int, tuple[Any, Any]]
"""For each list with rows: the hits of the last row that was read, and how many were read."""

Sql = tuple[str, list[Any]]
"""SQL, and its parameters."""


class RowList(NamedTuple):
    """Rows that an index sorts by hits."""

    content_type_id: int
    day: datetime.date | None
    is_compacted: bool


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is ranked: one counter of some models, over all time or over some days."""

    content_type_ids: Sequence[int]
    counter: str
    weights: Weights | None = None
    """How much a hit of each day counts. Without it, all hits count."""

    @property
    def table(self) -> str:
        """The name of the table with the hits."""
        return (HitSlot if self.weights is None else DailyHitSlot)._meta.db_table

    def lists(self) -> list[RowList]:
        """Return all lists of the models, and of the days if there are any."""
        days: Collection[datetime.date | None] = self.weights or [None]
        return [RowList(*of) for of in product(self.content_type_ids, days, (True, False))]

    def can_read_heads(self, depth: int) -> bool:
        """Return whether one statement may read the first ``depth`` rows of all lists."""
        lists = len(self.content_type_ids) * len(self.weights or [None]) * 2
        if lists > MOST_LISTS_IN_SQLITE and connections[hits_alias()].vendor == "sqlite":
            return False
        return depth <= min(MOST_ROWS, MOST_ROWS_OF_ALL_LISTS // lists)


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
        read = read_heads if scope.can_read_heads(size) else read_table
        ranking = read(scope, size)
        yield ranking
        is_complete, size = ranking.is_complete, 4 * size


def read_heads(scope: Scope, depth: int) -> Ranking:
    """Rank the objects in the first ``depth`` rows of each list, as far as their order is sure."""
    connection: Any = connections[hits_alias()]
    is_mariadb = connection.vendor == "mysql" and connection.mysql_is_mariadb
    candidates, ends = (_read_with_sums if is_mariadb else _read_and_join)(scope, depth)
    highest_slot, _ = ends.pop(NO_LIST)
    lists, found = scope.lists(), []
    for number, (last_hits, count) in ends.items():
        pk, day, is_compacted = lists[number]
        weight = 1 if scope.weights is None or day is None else scope.weights[day]
        # An object has one row in slot 0, and elsewhere one for each slot.
        most_rows = 1 if is_compacted else int(highest_slot)
        found.append(Head(count, int(last_hits), weight, most_rows, pk))
    return prove(_to_keys(candidates), found, depth=depth)


def _read_and_join(scope: Scope, depth: int) -> tuple[list[tuple[Any, ...]], Ends]:
    """
    Read the heads, and join all rows of their objects.

    Returns the content type id, object id and hits of each object, and where the lists end.
    """
    heads, heads_params = _select_heads(scope, depth)
    score, score_params = _score(scope)
    where, where_params = _where(scope)
    rows = _read(
        f"WITH heads AS ({heads}) "
        f"SELECT NULL, hit.content_type_id, hit.object_id, {score}, NULL "
        "FROM (SELECT DISTINCT content_type_id, object_id FROM heads) candidate "
        f"JOIN {scope.table} hit ON hit.content_type_id = candidate.content_type_id "
        f"AND hit.object_id = candidate.object_id AND {where} "
        "GROUP BY hit.content_type_id, hit.object_id "
        "UNION ALL SELECT list, NULL, NULL, MIN(hits), COUNT(*) FROM heads GROUP BY list "
        f"UNION ALL {_select_highest_slot(scope)}",
        heads_params + score_params + where_params,
    )
    ends = {number: (hits, count) for number, *_, hits, count in rows if number is not None}
    return [row[1:4] for row in rows if row[0] is None], ends


def _read_with_sums(scope: Scope, depth: int) -> tuple[list[tuple[Any, ...]], Ends]:
    """
    Read the heads, each row with the sum of its object. Returns the same as _read_and_join().

    MariaDB reads a common table expression anew for each reference, and caches the sums of an
    object that is in several heads. An index has all that a sum needs. It begins with
    ``is_compacted``: a sum over both values would not use it.
    """
    heads, heads_params = _select_heads(scope, depth)
    score, score_params = _score(scope)
    where, where_params = _where(scope)
    sums = [
        f"COALESCE((SELECT {score} FROM {scope.table} hit WHERE {where} "
        "AND hit.content_type_id = head.content_type_id AND hit.object_id = head.object_id "
        f"AND is_compacted = {is_compacted}), 0)"
        for is_compacted in (True, False)
    ]
    rows = _read(
        f"SELECT list, content_type_id, object_id, hits, {' + '.join(sums)} FROM ({heads}) head "
        f"UNION ALL {_select_highest_slot(scope)}",
        len(sums) * (score_params + where_params) + heads_params,
    )
    candidates: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    ends: Ends = {}
    for number, pk, object_id, hits, total in rows:
        last_hits, count = ends.get(number, (hits, 0))
        ends[number] = min(hits, last_hits), count + 1
        candidates[pk, object_id] = pk, object_id, total
    del candidates[None, None]
    return [*candidates.values()], ends


def _select_highest_slot(scope: Scope) -> str:
    highest = f"SELECT MAX(slot) FROM {scope.table} WHERE is_compacted = False"
    return f"SELECT {NO_LIST}, NULL, NULL, COALESCE(({highest}), 0), NULL"


def _select_heads(scope: Scope, depth: int) -> Sql:
    """Return a SELECT of the first rows of each list: its number, and the object and its hits."""
    if connections[hits_alias()].vendor == "postgresql":
        return _select_laterally(scope, depth)
    heads, params = [], []
    for number, of in enumerate(scope.lists()):
        rows = (
            f"SELECT {number} AS list, content_type_id, object_id, hits FROM {scope.table} "
            f"WHERE content_type_id = %s AND counter = %s AND is_compacted = {of.is_compacted}"
        )
        params += [of.content_type_id, scope.counter]
        if of.day:
            rows, params = f"{rows} AND day = %s", [*params, _to_param(of.day)]
        # SQLite takes no LIMIT in a part of a union.
        heads.append(f"SELECT * FROM ({rows} ORDER BY hits DESC LIMIT {depth}) head{number}")
    return " UNION ALL ".join(heads), params


def _select_laterally(scope: Scope, depth: int) -> Sql:
    """As _select_heads(). PostgreSQL would plan each part of a union, which takes 1 ms."""
    lists = scope.lists()
    values = ", ".join(
        f"({number}, {of.content_type_id}, %s::date, {of.is_compacted})"
        for number, of in enumerate(lists)
    )
    on_day = "" if scope.weights is None else "AND day = list.day "
    sql = (
        "SELECT list.number AS list, content_type_id, object_id, hits "
        f"FROM (VALUES {values}) AS list (number, model, day, is_compacted) CROSS JOIN LATERAL ("
        f"SELECT content_type_id, object_id, hits FROM {scope.table} "
        "WHERE content_type_id = list.model AND counter = %s "
        f"{on_day}AND is_compacted = list.is_compacted ORDER BY hits DESC LIMIT {depth}) head"
    )
    return sql, [*(of.day for of in lists), scope.counter]


def read_table(scope: Scope, size: int) -> Ranking:
    """Rank the first ``size`` objects, and sum up all their hits for it."""
    score, score_params = _score(scope)
    where, where_params = _where(scope)
    is_postgresql = connections[hits_alias()].vendor == "postgresql"
    bytewise = ' COLLATE "C"' if is_postgresql else ""  # Elsewhere, the column has it already.
    rows = _read(
        f"SELECT content_type_id, object_id, {score} AS score FROM {scope.table} hit "
        f"WHERE {where} GROUP BY content_type_id, object_id HAVING {score} > 0 "
        f"ORDER BY score DESC, content_type_id, object_id{bytewise} LIMIT {size}",
        score_params + where_params + score_params,
    )
    return Ranking(_to_keys(rows), is_complete=len(rows) < size)


def rank_these(scope: Scope, object_ids: Sequence[str]) -> list[RankedKey]:
    """Rank those of some objects that have hits. Costs a query per thousand."""
    score, score_params = _score(scope)
    where, where_params = _where(scope)
    found = []
    for start in range(0, len(object_ids), IDS_PER_STATEMENT):
        ids = object_ids[start : start + IDS_PER_STATEMENT]
        rows = _read(
            f"SELECT content_type_id, object_id, {score} FROM {scope.table} hit "
            f"WHERE {where} AND object_id IN ({', '.join(['%s'] * len(ids))}) "
            "GROUP BY content_type_id, object_id",
            [*score_params, *where_params, *ids],
        )
        found += [key for key in _to_keys(rows) if key.hits > 0]
    return sort_keys(found)


def _score(scope: Scope) -> Sql:
    """Return the sum of the hits of an object, each with the weight of its day."""
    weights = scope.weights or {}
    if {*weights.values()} <= {1}:
        return "SUM(hit.hits)", []
    cases = "WHEN %s THEN %s " * len(weights)
    params = [param for day, weight in weights.items() for param in (_to_param(day), weight)]
    # As decimals, since the product may be too large for an integer.
    return f"SUM(CAST(hit.hits AS DECIMAL(20, 0)) * CASE hit.day {cases}END)", params


def _where(scope: Scope) -> Sql:
    """Return a condition for the rows that are summed up."""
    models = ", ".join(["%s"] * len(scope.content_type_ids))
    where = f"hit.content_type_id IN ({models}) AND hit.counter = %s"
    params: list[Any] = [*scope.content_type_ids, scope.counter]
    if scope.weights is None:
        return where, params
    first_day, last_day = min(scope.weights), max(scope.weights)
    return f"{where} AND hit.day BETWEEN %s AND %s", [
        *params,
        _to_param(first_day),
        _to_param(last_day),
    ]


def _to_param(day: datetime.date) -> Any:
    return connections[hits_alias()].ops.adapt_datefield_value(day)


def _read(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    using = hits_alias()
    with savepoint(using), connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _to_keys(rows: Iterable[tuple[int, str, Any]]) -> list[RankedKey]:
    return [RankedKey((model, pk), int(hits)) for model, pk, hits in rows]
