"""Hits that a request has brought, kept on it, so that a page counts once."""

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
    Keep the last hit that ``request`` brought on each counter.

    ``delayed`` is the work that records the hits after a COMMIT, if there is one.
    """
    known = request.__dict__.setdefault(_HITS_ATTRIBUTE, {})
    known.update({key: (hit, delayed) for key, hit in hits})


def recall_hit(request: HttpRequest, key: CounterKey) -> Hit | None:
    """The last hit that ``request`` brought on a counter; None if there was none, or a rollback."""
    hit: Hit
    delayed: DelayedWork | None
    hit, delayed = request.__dict__.get(_HITS_ATTRIBUTE, {}).get(key, (None, None))
    return None if delayed and delayed.is_cancelled else hit
