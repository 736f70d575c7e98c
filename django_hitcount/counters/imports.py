"""Rows of imported hits, and the days that imports have hits of."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django_hitcount.counters.keys import CounterKey

Days = list[tuple[int, str, str, str, int]]
"""Content types and counters, each with the first and the last day of its hits, and visitors."""


class Row(NamedTuple):
    """The hits of a counter on one day. Rows sort in the order in which they are written."""

    key: CounterKey
    day: datetime.date
    hits: int
    visitors: int = 0


def find_common_days(days: Days, others: Days) -> str | None:
    """Describe days of a model and counter that are in both. None if there are none."""
    for content_type_id, counter, first, last, _ in days:
        for other_type_id, other_counter, other_first, other_last, _ in others:
            if (content_type_id, counter) == (other_type_id, other_counter):
                begin, end = max(first, other_first), min(last, other_last)
                if begin <= end:
                    return f"{counter!r} on days from {begin} to {end}"
    return None


def unite_days(days: Iterable[Sequence[Any]]) -> Days:
    """Unite those of a model and counter: a source may have changed since the import began."""
    found: dict[tuple[int, str], list[Sequence[Any]]] = {}
    for row in days:
        found.setdefault((row[0], row[1]), []).append(row)
    united: Days = []
    for key, rows in found.items():
        _, _, first_days, last_days, visitors = zip(*rows, strict=True)
        united.append((*key, min(first_days), max(last_days), sum(visitors)))
    return united
