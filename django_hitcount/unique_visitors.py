"""Read how many different visitors objects had."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount import conf
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of, list_days
from django_hitcount.counters.names import check_counter
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import VisitorsNotCounted
from django_hitcount.visitor_ranges import get_visitors_of_ranges

__all__ = [
    "Visitors",
    "aget_visitors",
    "avisitors_between",
    "avisitors_on",
    "get_visitors",
    "visitors_between",
    "visitors_on",
]

ModelT = TypeVar("ModelT", bound=Model)


def visitors_on(obj: Model, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
    """
    Return how many different visitors ``obj`` had on one calendar day.

    Args:
        obj: a saved object of any model.
        day: a date, in TIME_ZONE.
        counter: the name of a counter with the option ``visitors``.

    Raises VisitorsNotCounted if the counter does not count visitors, InvalidDay if ``day`` is
    not a date, and InvalidHit if another argument is invalid.

    Costs what visitors_between() costs.
    """
    return int(visitors_between(obj, day, day, counter=counter))


def visitors_between(
    obj: Model,
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    counter: str = DEFAULT_COUNTER,
) -> Visitors:
    """
    Return how many different visitors ``obj`` had from one calendar day to another, both included.

    Args:
        obj: a saved object of any model.
        first_day: a date, in TIME_ZONE.
        last_day: a date that is not earlier, up to 3,660 days in all.
        counter: the name of a counter with the option ``visitors``.

    Raises VisitorsNotCounted if the counter does not count visitors, InvalidDay if the days
    are invalid, and InvalidHit if another argument is invalid.

    Costs a query, and with Redis one round trip. If days are counted together (only if
    VISITOR_KEY_ROTATION is "month" or "never"), costs one more round trip. Each of these days sends
    up to 12 KB, and one round trip sends up to 100 days.
    """
    return get_visitors([obj], first_day, last_day, counter=counter)[obj]


def get_visitors(
    objs: Iterable[ModelT],
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]:
    """
    Return how many different visitors each of ``objs`` had, by object.

    Without days, returns the visitors of today. For the other arguments and the errors, see
    visitors_between(). Costs what visitors_between() costs, once for all objects.
    """
    last_day = last_day or day_of()
    keys = {obj: counter_key(obj, counter=valid_visitor_counter(counter)) for obj in objs}
    days = first_day or last_day, last_day
    list_days(*days)
    found = get_visitors_of_ranges([(key, *days) for key in keys.values()])
    return {obj: found[key, *days] for obj, key in keys.items()}


def valid_visitor_counter(counter: str) -> str:
    """Return ``counter``; raise UnknownCounter or VisitorsNotCounted if it counts no visitors."""
    if not conf.get_config().counters[check_counter(counter)].visitors:
        raise VisitorsNotCounted(
            f"The counter {counter!r} does not count visitors. Turn that on in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{counter!r}: {{"visitors": True}}}}}}.'
        )
    return counter


avisitors_on = sync_to_async(visitors_on)
"""See visitors_on()."""

avisitors_between = sync_to_async(visitors_between)
"""See visitors_between()."""

aget_visitors = sync_to_async(get_visitors)
"""See get_visitors()."""
