"""
Objects in the order of their hits, and the proof that none is missing.

The rows of a table are lists that the database keeps sorted by hits. The Threshold Algorithm
(Ronald Fagin, Amnon Lotem and Moni Naor, "Optimal Aggregation Algorithms for Middleware", 2001)
reads only the head of each list. An object that is in no head has at most as many hits as the last
rows of all heads together. So the order of all objects with more hits than this bound is certain.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.exceptions import InvalidArgument

TREND_UNIT = 2**24
"""The weight of a hit of today in a trend. Weights are whole numbers, so that every database
computes the same score, and equal scores are equal."""

TREND_HALF_LIVES = 10
"""How many half-lives a trend covers. A hit from before would count less than a thousandth."""

LONGEST_HALF_LIFE = 366
"""In days: the days of a trend are then the longest range."""

LARGEST_LIMIT = 1_000_000
"""The most objects of a ranking. All of them are loaded, and a database rejects larger numbers."""

Weights = Mapping[datetime.date, int]
"""How much a hit of each day counts. The days follow each other."""


class Order(StrEnum):
    """
    What a ranking orders objects by, the most first. Those with 0 or less are left out.

    The values are SQL over the columns ``hits`` and ``hits_before``.
    """

    TOP = "hits"
    RISING = "hits - hits_before"
    FALLING = "hits_before - hits"


class RankedKey(NamedTuple):
    """An object of a ranking, and its hits; in a trend, in units of 1/TREND_UNIT."""

    object_key: ObjectKey
    hits: int
    hits_before: int = 0
    """Its hits in the period before, if the ranking compares two."""

    def score(self, order: Order) -> int:
        """Return what a ranking orders the object by."""
        if order is Order.TOP:
            return self.hits
        change = self.hits - self.hits_before
        return change if order is Order.RISING else -change


class Ranking(NamedTuple):
    """The first objects of a ranking, in its order."""

    keys: Sequence[RankedKey]
    """Those that are certain: no other object comes before one of them."""

    is_complete: bool
    """Whether these are all objects of the ranking."""

    others: Sequence[RankedKey] = ()
    """The other objects that were read, in any order. More may come between them."""

    order: Order = Order.TOP

    def proves(self, limit: int) -> bool:
        """Return whether the first ``limit`` objects are certain."""
        return self.is_complete or len(self.keys) >= limit

    def first(self, limit: int) -> list[RankedKey]:
        """Return the first ``limit`` objects that were read, also those that are not certain."""
        return [*self.keys, *rank_keys(self.others, self.order)][:limit]


class RowList(NamedTuple):
    """Rows, or objects, those with the most hits first."""

    content_type_id: int
    is_compacted: bool = False
    day: datetime.date | None = None
    weight: int = 1
    """How much a hit of that day counts."""

    is_summed: bool = False
    """Whether each row is an object, with all its hits that are not compacted."""

    is_before: bool = False
    """Whether the hits are those of the period before."""


class Head(NamedTuple):
    """The first rows of a list that has more of them."""

    row_list: RowList
    last_hits: int
    """The hits of the last of these rows."""

    rows_per_object: int
    """How many rows of the list one object may have."""


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

    def periods(self) -> list[Scope]:
        """Return the scope of each period alone: this one, or both that are compared."""
        if not self.before:
            return [self]
        both = self.weights, weigh_days(self.before)
        return [replace(self, weights=weights, before=()) for weights in both]

    def lists(self) -> list[RowList]:
        """Return all lists of the models and periods, and of the days if there are any."""
        found = []
        for number, period in enumerate(self.periods()):
            weights: Mapping[Any, int] = period.weights or {None: 1}
            for content_type_id in self.content_type_ids:
                of_model = RowList(content_type_id, is_before=number > 0)
                for is_compacted in (True,) if self.sums_uncompacted else (True, False):
                    found += [
                        of_model._replace(is_compacted=is_compacted, day=day, weight=weight)
                        for day, weight in weights.items()
                    ]
                if self.sums_uncompacted or self.weights is not None:
                    found.append(of_model._replace(is_summed=True))
        return found


def rank_keys(keys: Iterable[RankedKey], order: Order = Order.TOP) -> list[RankedKey]:
    """
    Sort objects, and leave out those with 0 or less.

    Equal ones are sorted by content type and object id, byte by byte.
    """
    ranked = [key for key in keys if key.score(order) > 0]
    return sorted(ranked, key=lambda key: (-key.score(order), key.object_key))


def prove(
    candidates: Iterable[RankedKey], heads: Iterable[Head], order: Order = Order.TOP
) -> Ranking:
    """
    Rank objects, and say how far their order is certain.

    Args:
        candidates: all objects with a row in one of the heads, with all their hits.
        heads: those of the lists that have more rows. For a change, of the period that has more
            hits: an object in no head has at most so many more.
    """
    bounds: Counter[int] = Counter()
    for row_list, last_hits, rows_per_object in heads:
        # A row may be negative. An object without a row in this list then has more: 0.
        most = max(last_hits, 0) * rows_per_object * row_list.weight
        bounds[row_list.content_type_id] += most
    bound = max(bounds.values(), default=0)
    certain: list[RankedKey] = []
    others: list[RankedKey] = []
    for key in candidates:
        (certain if key.score(order) > bound else others).append(key)
    return Ranking(rank_keys(certain, order), not bounds, others, order)


def weigh_days(days: Sequence[datetime.date]) -> Weights:
    """Return weights under which all hits of ``days`` count the same."""
    return dict.fromkeys(days, 1)


def weigh_trend(today: datetime.date, half_life_days: float) -> Weights:
    """
    Return weights that halve with each half-life, of ten half-lives up to ``today``.

    A hit of today weighs TREND_UNIT. Raises InvalidArgument if the half-life is invalid.
    """
    if type(half_life_days) not in (int, float) or not 0 < half_life_days <= LONGEST_HALF_LIFE:
        raise InvalidArgument(
            f"Invalid half-life: {half_life_days!r}. Pass a number of days above 0 and up to "
            f"{LONGEST_HALF_LIFE}."
        )
    ages = range(int(TREND_HALF_LIVES * half_life_days) + 1)
    return {
        today - datetime.timedelta(days=age): round(TREND_UNIT * 2 ** (-age / half_life_days))
        for age in reversed(ages)
    }


def check_limit(limit: int) -> int:
    """Return ``limit``; raise InvalidArgument if it is not a whole number from 1 to 1,000,000."""
    if type(limit) is not int or not 1 <= limit <= LARGEST_LIMIT:
        raise InvalidArgument(
            f"Invalid limit: {limit!r}. Pass a whole number from 1 to {LARGEST_LIMIT:,}."
        )
    return limit
