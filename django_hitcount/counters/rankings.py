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
from typing import NamedTuple

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.exceptions import InvalidRanking

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


class RankedKey(NamedTuple):
    """An object of a ranking, and its hits; in a trend, in units of 1/TREND_UNIT."""

    object_key: ObjectKey
    hits: int


class Ranking(NamedTuple):
    """The first objects of a ranking, those with the most hits first."""

    keys: Sequence[RankedKey]
    is_complete: bool
    """Whether these are all objects with hits."""


class Head(NamedTuple):
    """The first rows of a list of rows, which is sorted by hits."""

    rows: int
    last_hits: int
    """The hits of the last of these rows."""

    weight: int
    rows_per_object: int
    """How many rows of the list one object may have."""

    content_type_id: int = 0
    """The model whose objects are in the list."""


def sort_keys(keys: Iterable[RankedKey]) -> list[RankedKey]:
    """Sort by hits, the most first; equal ones by content type and object id, byte by byte."""
    return sorted(keys, key=lambda key: (-key.hits, key.object_key))


def prove(candidates: Iterable[RankedKey], heads: Iterable[Head], *, depth: int) -> Ranking:
    """
    Return the part of a ranking that is certain, without objects that have no hits left.

    Args:
        candidates: all objects with a row in one of ``heads``, with all their hits.
        heads: the first ``depth`` rows of each list; fewer if the list has no more.
    """
    open_ends = [head for head in heads if head.rows == depth]
    bounds: Counter[int] = Counter()
    for head in open_ends:
        # A row may be negative. An object without a row in this list then has more: 0.
        most = max(head.last_hits, 0) * head.rows_per_object * head.weight
        bounds[head.content_type_id] += most
    bound = max(bounds.values(), default=0)
    certain = [key for key in candidates if key.hits > bound]
    return Ranking(sort_keys(certain), is_complete=not open_ends)


def weigh_days(days: Sequence[datetime.date]) -> Weights:
    """Return weights under which all hits of ``days`` count the same."""
    return dict.fromkeys(days, 1)


def weigh_trend(today: datetime.date, half_life_days: float) -> Weights:
    """
    Return weights that halve with each half-life, of ten half-lives up to ``today``.

    A hit of today weighs TREND_UNIT. Raises InvalidRanking if the half-life is invalid.
    """
    if type(half_life_days) not in (int, float) or not 0 < half_life_days <= LONGEST_HALF_LIFE:
        raise InvalidRanking(
            f"Invalid half-life: {half_life_days!r}. Pass a number of days above 0 and up to "
            f"{LONGEST_HALF_LIFE}."
        )
    ages = range(int(TREND_HALF_LIVES * half_life_days) + 1)
    return {
        today - datetime.timedelta(days=age): round(TREND_UNIT * 2 ** (-age / half_life_days))
        for age in reversed(ages)
    }


def check_limit(limit: int) -> int:
    """Return ``limit``; raise InvalidRanking if it is not a whole number from 1 to 1,000,000."""
    if type(limit) is not int or not 1 <= limit <= LARGEST_LIMIT:
        raise InvalidRanking(
            f"Invalid limit: {limit!r}. Pass a whole number from 1 to {LARGEST_LIMIT:,}."
        )
    return limit
