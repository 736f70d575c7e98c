"""Hits that a request has brought, kept on it, so that a page counts once."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest

from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.outcomes import Hit
from django_hitcount.db.commits import Waiting

_HITS_ATTRIBUTE = "_hitcount_hits"


def remember_hits(
    request: HttpRequest, hits: Iterable[tuple[CounterKey, Hit]], waiting: Waiting | None
) -> None:
    """
    Keep the last hit that ``request`` brought on each counter.

    ``waiting`` is the COMMIT that the hits wait for, if there is one.
    """
    known = request.__dict__.setdefault(_HITS_ATTRIBUTE, {})
    known.update({key: (hit, waiting) for key, hit in hits})


def recall_hit(request: HttpRequest, key: CounterKey) -> Hit | None:
    """The last hit that ``request`` brought on a counter; None if there was none, or a rollback."""
    hit: Hit
    waiting: Waiting | None
    hit, waiting = request.__dict__.get(_HITS_ATTRIBUTE, {}).get(key, (None, None))
    return None if waiting and waiting.is_dropped else hit
