"""
What a request remembers: the hits that it has recorded, so that a page counts once, and the numbers
that it has read, so that its next tags need not read them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

from django.http import HttpRequest

from django_hitcount.counters.fresh_totals import FRESH_SECONDS
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, CounterRange, ObjectKey
from django_hitcount.counters.outcomes import Hit
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.commits import DelayedWork

_MEMORY_ATTRIBUTE = "_hitcount_memory"


class PageMemory:
    """The memory of one request. It forgets numbers after ten seconds, longer than a page takes."""

    __slots__ = ("hits", "objects", "ranges", "totals", "visitors")

    def __init__(self) -> None:
        self.hits: dict[CounterKey, tuple[Hit, DelayedWork | None]] = {}
        """The last hit on each counter, and the work that waits for a COMMIT, if it does."""

        self.objects: set[ObjectKey] = set()
        """The objects that these hits are on."""

        self.totals: dict[CounterKey, tuple[int, float]] = {}
        """Totals, and when they were read."""

        self.visitors: dict[CounterRange, tuple[Visitors, float]] = {}
        """Visitors, and when they were read."""

        self.ranges: dict[CounterRange, tuple[int, float]] = {}
        """Hits of ranges of days, and when they were read."""


def _memory_of(request: HttpRequest) -> PageMemory:
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    if memory is None:
        memory = request.__dict__[_MEMORY_ATTRIBUTE] = PageMemory()
    return memory


def remember_hits(
    request: HttpRequest,
    recorded: Sequence[NewHits],
    results: Sequence[Hit],
    delayed: DelayedWork | None,
) -> None:
    """
    Keep the result of the last hit that ``request`` recorded on each counter.

    ``delayed`` is the work that waits for the COMMIT, if the hits wait for one.
    """
    memory, now = _memory_of(request), monotonic()
    for (key, *_), hit in zip(recorded, results, strict=True):
        memory.hits[key] = hit, delayed
        memory.objects.add(key[:2])
        if hit.total is None:
            memory.totals.pop(key, None)
        else:
            memory.totals[key] = hit.total, now


def recall_hit(request: HttpRequest, key: CounterKey) -> Hit | None:
    """Return the last hit that ``request`` recorded on a counter; None if that was rolled back."""
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    hit, delayed = memory.hits.get(key, (None, None)) if memory else (None, None)
    return None if delayed and delayed.is_cancelled else hit


def has_recorded(request: HttpRequest, key: ObjectKey) -> bool:
    """Return whether ``request`` has recorded a hit on an object."""
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    return memory is not None and key in memory.objects


def remember_numbers(
    request: HttpRequest,
    totals: Mapping[CounterKey, int],
    visitors: Mapping[CounterRange, Visitors],
) -> None:
    """Keep numbers that were read a moment ago."""
    memory, now = _memory_of(request), monotonic()
    memory.totals.update({key: (total, now) for key, total in totals.items()})
    memory.visitors.update({last_days: (count, now) for last_days, count in visitors.items()})


def remember_range(request: HttpRequest, last_days: CounterRange, hits: int) -> None:
    """Keep the hits of a range of days that were read a moment ago."""
    _memory_of(request).ranges[last_days] = hits, monotonic()


def forget_days(request: HttpRequest, keys: Iterable[CounterKey]) -> None:
    """Forget visitors, and hits of days, of counters that ``request`` is about to record."""
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    if memory is None:
        return
    memory.ranges.clear()
    if memory.visitors:
        changed = {*keys}
        memory.visitors = {
            last_days: count
            for last_days, count in memory.visitors.items()
            if last_days.key not in changed
        }


def recall_total(request: HttpRequest, key: CounterKey) -> int | None:
    """
    Return the total that ``request`` has recorded or read a moment ago; None without one.

    It includes the hit of the page, unless that was rolled back.
    """
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    if memory is None or (key in memory.hits and recall_hit(request, key) is None):
        return None
    total, read_at = memory.totals.get(key, (None, 0.0))
    return total if monotonic() - read_at <= FRESH_SECONDS else None


def recall_visitors(request: HttpRequest, last_days: CounterRange) -> Visitors | None:
    """Return the visitors that ``request`` has read a moment ago; None without them."""
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    count, read_at = memory.visitors.get(last_days, (None, 0.0)) if memory else (None, 0.0)
    return count if monotonic() - read_at <= FRESH_SECONDS else None


def recall_range(request: HttpRequest, last_days: CounterRange) -> int | None:
    """Return the hits of a range of days that ``request`` has read a moment ago; None if not."""
    memory: PageMemory | None = request.__dict__.get(_MEMORY_ATTRIBUTE)
    hits, read_at = memory.ranges.get(last_days, (None, 0.0)) if memory else (None, 0.0)
    return hits if monotonic() - read_at <= FRESH_SECONDS else None
