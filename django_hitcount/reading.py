"""
Read the hits and the visitors of objects: of all time, or of some days. Or let Redis forget what it
has read, so that all of it is read again.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, TypeVar, overload

from django.db.models import Model

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import find_range, last_days
from django_hitcount.counters.keys import valid_visitor_counter
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.counter_keys import keys_by_object
from django_hitcount.numbers import read_numbers
from django_hitcount.twins import async_twin

__all__ = [
    "Visitors",
    "aget_hits",
    "aget_visitors",
    "get_hits",
    "get_visitors",
    "refresh_hits",
]

ModelT = TypeVar("ModelT", bound=Model)


@overload
def get_hits(
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> int: ...


@overload
def get_hits(
    obj: Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, int]: ...


def get_hits(
    obj: Model | Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> int | dict[ModelT, int]:
    """
    Return the exact hits of an object, or of each object of a list, by object, 0 if it has none.

    Args:
        obj: a saved object of any model, or an iterable of such objects, of any models.
        days: only count the hits of so many days, today included, up to 3,660.
        first_day, last_day: in place of ``days``, only count the hits from one date in TIME_ZONE to
            another, both included. The last day is today by default.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    Raises InvalidArgument if an argument is invalid. If Redis does not know all hits, raises the
    database's error if the database does not answer.

    Costs the same for one object and for 2,000. With Redis, the hits of all time cost one round
    trip. If Redis does not know all of them, they cost two and a query, and Redis then keeps them,
    except within a transaction. Hits of some days cost one round trip and a query. Without Redis,
    costs one query.
    """
    ends = find_range(days, first_day, last_day) or (None, None)
    found: int | dict[ModelT, int] = _read(obj, counter, *ends)
    return found


@overload
def get_visitors(
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> Visitors: ...


@overload
def get_visitors(
    obj: Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> dict[ModelT, Visitors]: ...


def get_visitors(
    obj: Model | Iterable[ModelT],
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> Visitors | dict[ModelT, Visitors]:
    """
    Return how many different visitors an object had, or each object of a list, by object.

    Without days, returns the visitors of today. The arguments are those of get_hits(), and
    ``counter`` needs the option ``visitors``. Over several days, a visitor counts once per day,
    unless you have Redis and VISITOR_KEY_ROTATION "month" or "never".

    Raises InvalidArgument if an argument is invalid, or the counter does not count visitors.

    Costs a query, and with Redis one round trip, for one object and for many. If days are counted
    together (only if VISITOR_KEY_ROTATION is "month" or "never"), costs one more round trip. Each
    of these days sends up to 12 KB, and one round trip sends up to 100 days.
    """
    ends = find_range(days, first_day, last_day) or last_days(1)
    valid_visitor_counter(counter)
    found: Visitors | dict[ModelT, Visitors] = _read(obj, counter, *ends, of_visitors=True)
    return found


def _read(
    obj: Any,
    counter: str,
    first_day: datetime.date | None,
    last_day: datetime.date | None,
    of_visitors: bool = False,
) -> Any:
    """Read a number of an object, or of each object of a list, by object."""
    keys = keys_by_object(obj, counter=counter)
    numbers = {of: Number(key, first_day, last_day, of_visitors) for of, key in keys.items()}
    found = read_numbers(numbers.values())
    by_object = {of: found[number] for of, number in numbers.items()}
    return by_object[obj] if isinstance(obj, Model) else by_object


def refresh_hits() -> None:
    """
    Drop the totals and the numbers of visitors that Redis keeps, so that they are read again.

    Call it if something else than this app has changed the tables, or if processes without Redis
    have written hits beside those with Redis. ``manage.py migrate`` and ``flush`` do so. Hits that
    wait are kept.

    Costs nothing without Redis. With Redis, costs a round trip per thousand keys that it has.

    Raises BufferUnavailable. Then some totals may be left: call it again.
    """
    get_buffer().discard_all_totals()


aget_hits = async_twin(get_hits)
"""See get_hits()."""

aget_visitors = async_twin(get_visitors)
"""See get_visitors()."""
