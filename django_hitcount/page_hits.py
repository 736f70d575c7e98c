"""The hits that a request has recorded. Kept on the request, so that a page counts once."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest

from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.outcomes import Hit
from django_hitcount.db.commits import DelayedWork

_HITS_ATTRIBUTE = "_hitcount_hits"


def remember_hits(
    request: HttpRequest, hits: Iterable[tuple[CounterKey, Hit]], delayed: DelayedWork | None
) -> None:
    """
    Keep the last hit that ``request`` recorded on each counter.

    ``delayed`` is the work that waits for the COMMIT, if the hits wait for one.
    """
    known = request.__dict__.setdefault(_HITS_ATTRIBUTE, {})
    known.update({key: (hit, delayed) for key, hit in hits})


def recall_hit(request: HttpRequest, key: CounterKey) -> Hit | None:
    """Return the last hit that ``request`` recorded on a counter; None if that was rolled back."""
    hit: Hit
    delayed: DelayedWork | None
    hit, delayed = request.__dict__.get(_HITS_ATTRIBUTE, {}).get(key, (None, None))
    return None if delayed and delayed.is_cancelled else hit
