"""Rows of imported hits, and the days that imports have hits of."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django_hitcount.counters.keys import CounterKey

Days = Sequence[tuple[int, str, list[str], int]]
"""Content types and counters, each with the days of its hits in order, and how many visitors."""


class Row(NamedTuple):
    """The hits of a counter on one day. Rows sort in the order in which they are written."""

    key: CounterKey
    day: datetime.date
    hits: int
    visitors: int = 0


def find_common_days(days: Days, others: Days) -> str | None:
    """Describe days of a model and counter that are in both. None if there are none."""
    days_of = {(content_type_id, counter): found for content_type_id, counter, found, _ in others}
    for content_type_id, counter, found, _ in days:
        if common := sorted({*found} & {*days_of.get((content_type_id, counter), [])}):
            if len(common) == 1:
                return f"{counter!r} on {common[0]}"
            return f"{counter!r} on {len(common)} days from {common[0]} to {common[-1]}"
    return None


def unite_days(days: Iterable[Sequence[Any]]) -> Days:
    """Unite those of a model and counter: a source may have changed since the import began."""
    days_of: dict[tuple[int, str], set[str]] = defaultdict(set)
    visitors_of: Counter[tuple[int, str]] = Counter()
    for content_type_id, counter, found, visitors in days:
        days_of[content_type_id, counter] |= {*found}
        visitors_of[content_type_id, counter] += visitors
    return [(*key, sorted(found), visitors_of[key]) for key, found in days_of.items()]
