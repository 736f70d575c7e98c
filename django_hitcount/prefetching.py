"""Read the numbers of many objects at once, so that a list that shows them costs nothing more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.counted_models import is_unsaved
from django_hitcount.counters.days import last_days
from django_hitcount.counters.fresh_totals import remember_total, remember_visitors
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.names import check_counter
from django_hitcount.counters.page_numbers import Wanted
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import UnsavedObject
from django_hitcount.page_numbers import Numbers, read_numbers
from django_hitcount.unique_visitors import valid_visitor_counter

__all__ = ["aprefetch_hits", "prefetch_hits"]

logger = logging.getLogger("django_hitcount")

KeyedObject = tuple[Model, CounterKey]
"""An object, and the key of one of its counters."""


def prefetch_hits(
    objects: Iterable[Model | None],
    *,
    counters: Sequence[str] = (DEFAULT_COUNTER,),
    visitors_days: int | Sequence[int] | None = None,
) -> None:
    """
    Read the totals of many objects, and keep them on the objects for ten seconds.

    Then ``obj.hits``, ``{% hit_total obj %}`` and ``{% hit_visitors obj %}`` of these counters and
    days cost nothing. Numbers that cannot be read now are left out: their tags try again.

    Args:
        objects: a list, a queryset or a page of a paginator, with objects of any models. A queryset
            is evaluated, unless it has been. Skips None and objects that are not saved. Several
            instances of one object are read once.
        counters: the names of counters in HITCOUNT["COUNTERS"].
        visitors_days: also read the visitors of so many days, today included; or of each of several
            numbers of days. Reads those of the ``counters`` that count visitors.

    Raises InvalidHit if something else than a saved object is in ``objects``, or a counter is not
    declared, InvalidDay if a number of days is invalid, and VisitorsNotCounted if none of
    ``counters`` counts visitors.

    With Redis, costs one round trip. If Redis does not know all totals, costs one more and a query.
    If it does not know all visitors, costs one more and one or two queries; a round trip sends up
    to a hundred sketches, of 12 KB at most. Without Redis, costs a query for the totals, and one
    for the visitors.
    """
    counters = [*dict.fromkeys(map(check_counter, _list_values(counters)))]
    numbers = [] if visitors_days is None else _list_values(visitors_days)
    ranges = [last_days(days) for days in dict.fromkeys(numbers)]
    with_visitors = _counters_with_visitors(counters) if ranges else []
    if isinstance(objects, Model | str) or not isinstance(objects, Iterable):
        raise UnsavedObject(f"Invalid objects: {objects!r}. Pass a list or a queryset of objects.")
    objs = [obj for obj in objects if obj is not None and not is_unsaved(obj)]
    try:
        keyed = {name: [(obj, counter_key(obj, counter=name)) for obj in objs] for name in counters}
    except DATABASE_ERRORS as exc:
        logger.error("The hits of %d objects cannot be read: %s", len(objs), exc)
        return
    totals = [each for counter in counters for each in keyed[counter]]
    visitors = [
        (obj, CounterRange(key, *days))
        for counter, days in product(with_visitors, ranges)
        for obj, key in keyed[counter]
    ]
    wanted = Wanted({key for _, key in totals}, {last for _, last in visitors})
    _remember(read_numbers(wanted), totals, visitors)


def _list_values(value: Any) -> list[Any]:
    """Return several values as a list, and one value, valid or not, as a list of it."""
    return [*value] if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _counters_with_visitors(counters: Sequence[str]) -> list[str]:
    """Return those of ``counters`` that count visitors; raise VisitorsNotCounted if none does."""
    options = get_config().counters
    found = [counter for counter in counters if options[counter].visitors]
    return found or [valid_visitor_counter(counter) for counter in counters[:1]]


def _remember(
    found: Numbers,
    totals: Iterable[KeyedObject],
    visitors: Iterable[tuple[Model, CounterRange]],
) -> None:
    """Keep numbers on the objects that they are of."""
    for obj, key in totals:
        if key in found.totals:
            remember_total(obj, found.totals[key], counter=key.counter)
    for obj, last in visitors:
        if last in found.visitors:
            count = found.visitors[last]
            remember_visitors(obj, count, last)


aprefetch_hits = sync_to_async(prefetch_hits)
"""See prefetch_hits()."""
