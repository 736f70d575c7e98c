"""What is ranked, and the SQL that all statements for it share."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import connections

from django_hitcount.counters.rankings import Weights, weigh_days
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.sql import Sql
from django_hitcount.db.tables import DailyHitSlot, HitSlot


class RowList(NamedTuple):
    """Rows, or objects, those with the most hits first."""

    content_type_id: int
    day: datetime.date | None
    is_compacted: bool
    is_summed: bool = False
    """Whether each row is an object, with all its hits that are not compacted."""

    is_before: bool = False
    """Whether the hits are those of the period before."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is ranked: one counter of some models, over all time or over some days."""

    content_type_ids: Sequence[int]
    counter: str
    weights: Weights | None = None
    """How much a hit of each day counts. Without it, all hits count."""

    before: Sequence[datetime.date] = ()
    """The days of a period before, whose hits are summed up apart. It needs ``weights`` of 1."""

    sums_uncompacted: bool = False
    """
    Whether rows that are not compacted are summed up by object, instead of reading heads of them.

    It takes longer, the more such rows there are: 50,000 take about 50 ms. But it proves more. An
    object may have such a row in each slot: with 64 slots, a row of 2 hits leaves 128 hits open.
    """

    @property
    def table(self) -> str:
        """The name of the table with the hits."""
        return (HitSlot if self.weights is None else DailyHitSlot)._meta.db_table

    def lists(self) -> list[RowList]:
        """Return all lists of the models, and of the days if there are any."""
        if self.before:
            parts = [self.of_period(is_before=is_before) for is_before in (False, True)]
            in_period, before = (part.lists() for part in parts)
            return [*in_period, *(row_list._replace(is_before=True) for row_list in before)]
        days: Collection[datetime.date | None] = self.weights or [None]
        found = []
        for content_type_id in self.content_type_ids:
            found += [RowList(content_type_id, day, is_compacted=True) for day in days]
            if not self.sums_uncompacted:
                found += [RowList(content_type_id, day, is_compacted=False) for day in days]
            if self.sums_uncompacted or self.weights is not None:
                found.append(RowList(content_type_id, None, is_compacted=False, is_summed=True))
        return found

    def of_period(self, *, is_before: bool) -> Scope:
        """Return the scope of one of the two periods alone."""
        weights = weigh_days(self.before) if is_before else self.weights
        return replace(self, weights=weights, before=())


def sum_hits(scope: Scope) -> Sql:
    """Return the sum of the hits of an object, each with the weight of its day."""
    weights = scope.weights or {}
    if scope.before:
        return _sum_days(weights)
    if {*weights.values()} <= {1}:
        return "SUM(hit.hits)", []
    weight, params = _choose_weight(sorted(weights.items()))
    # As decimals, since the product may be too large for an integer.
    return f"SUM(CAST(hit.hits AS DECIMAL(20, 0)) * {weight})", params


def sum_hits_before(scope: Scope) -> Sql:
    """Return the sum of the hits of an object in the period before; 0 if there is none."""
    return _sum_days(scope.before) if scope.before else ("0", [])


def _sum_days(days: Collection[datetime.date]) -> Sql:
    """Return the sum of the hits of an object on days that follow each other."""
    ends = [to_param(min(days)), to_param(max(days))]
    return "SUM(CASE WHEN hit.day BETWEEN %s AND %s THEN hit.hits ELSE 0 END)", ends


def _choose_weight(weights: Sequence[tuple[datetime.date, int]]) -> Sql:
    """Return the weight of a row. It takes five comparisons for a month: one a day is slow."""
    if len(weights) == 1:
        return str(weights[0][1]), []
    middle = len(weights) // 2
    earlier, earlier_params = _choose_weight(weights[:middle])
    later, later_params = _choose_weight(weights[middle:])
    return (
        f"CASE WHEN hit.day < %s THEN {earlier} ELSE {later} END",
        [to_param(weights[middle][0]), *earlier_params, *later_params],
    )


def match_scope(scope: Scope) -> Sql:
    """Return a condition for the rows with the hits of a scope."""
    models = ", ".join(["%s"] * len(scope.content_type_ids))
    where = f"hit.content_type_id IN ({models}) AND hit.counter = %s"
    params: list[Any] = [*scope.content_type_ids, scope.counter]
    if scope.weights is None:
        return where, params
    first_day, last_day = min([*scope.weights, *scope.before]), max(scope.weights)
    return f"{where} AND hit.day BETWEEN %s AND %s", [
        *params,
        to_param(first_day),
        to_param(last_day),
    ]


def to_param(day: datetime.date) -> Any:
    """Return a day as the driver of the database takes it."""
    return connections[hits_alias()].ops.adapt_datefield_value(day)
