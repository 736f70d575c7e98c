"""
Read exact totals: the hits in the tables, plus the hits that wait in the buffer.

A flush may move hits from the buffer into the tables after the buffer was read, and before the
tables are. One statement reads the sums and the ledger, which says whose hits the sums include.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from typing import TypeVar, overload

from django.db.models import Model

from django_hitcount import series
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.grouping import split
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.batches import BufferState, RecordResult
from django_hitcount.counters.days import find_range
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Wanted
from django_hitcount.db import sums
from django_hitcount.db.counter_keys import counter_key, keys_by_object
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.transactions import DATABASE_ERRORS, is_in_transaction
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.breaker import Guard, page_read_breaker
from django_hitcount.twins import async_twin

__all__ = [
    "aget_hits",
    "get_hits",
    "refresh_hits",
]

KEYS_AT_A_TIME = 5000
"""Counters in one statement and round trip: no database limits the parameters to as few."""

logger = logging.getLogger("django_hitcount")

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
    Return the exact hits of an object, or of each object of a list, by object.

    Args:
        obj: a saved object of any model, or an iterable of such objects, of any models.
        days: only count the hits of so many days, today included, up to 3,660.
        first_day, last_day: in place of ``days``, only count the hits from one date in TIME_ZONE to
            another, both included. The last day is today by default.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    Raises InvalidArgument if an argument is invalid. If Redis does not know all hits, raises the
    database's error if the database does not answer.

    Costs the same for one object and for many. With Redis, the hits of all time cost one round
    trip. If Redis does not know all of them, they cost two and a query, and Redis then keeps them,
    except within a transaction. Hits of some days cost one round trip and a query. Without Redis,
    costs one query.
    """
    ends = find_range(days, first_day, last_day)
    keys = keys_by_object(obj, counter=counter)
    if ends is None:
        found = get_totals_of(keys.values())
    else:
        found = series.read_hits_of_each({*keys.values()}, series.day_range(*ends))
    hits = {of: found[key] for of, key in keys.items()}
    return hits[obj] if isinstance(obj, Model) else hits


def get_totals_of(keys: Collection[CounterKey]) -> dict[CounterKey, int]:
    """
    Return the exact totals of ``keys``; see get_hits().

    Raises the database's error if the database does not answer.
    """
    totals: dict[CounterKey, int] = {}
    _find_totals(totals, keys, None, nullcontext)
    return totals


def _find_totals(
    totals: dict[CounterKey, int],
    keys: Collection[CounterKey],
    state: BufferState | None,
    guard: Guard,
) -> None:
    """
    Add the totals of ``keys`` to ``totals``, so that those found before an error are kept.

    ``state`` is what the buffer knows of these totals, if the caller has read it already.
    """
    for some in split([*set(keys)], KEYS_AT_A_TIME):
        _find_some(totals, some, state, guard)


def _find_some(
    totals: dict[CounterKey, int],
    keys: Collection[CounterKey],
    state: BufferState | None,
    guard: Guard,
) -> None:
    buffer = get_buffer()
    state = state or buffer.read_numbers(Wanted(keys)).state
    totals.update(state.totals)
    missing = {*keys} - totals.keys()
    if not missing:
        return
    using = hits_alias()
    with guard(), savepoint(using):
        found, applied = sums.read_sums(missing, [part.id for part in state.held], using=using)
    held = [part.hits for part in state.held if part.id not in applied]
    loaded = {key: found.get(key, 0) + sum(hits.get(key, 0) for hits in held) for key in missing}
    totals.update(loaded)
    # What a transaction reads may be wrong for others. If pending hits are in the tables, they were
    # flushed meanwhile, or Redis has gone back, and a claim will drop them.
    if not is_in_transaction(using) and not any(p.id in applied for p in state.pending.values()):
        buffer.keep_totals(loaded, state=state)


def totals_or_none(
    keys: Collection[CounterKey], state: BufferState | None = None
) -> dict[CounterKey, int]:
    """
    As get_totals_of(), but leave out totals that cannot be read, instead of raising an error.

    For pages: does not read the database while the breaker of page reads is open. ``state`` is what
    the buffer knows of these totals, if the caller has read it already.
    """
    totals: dict[CounterKey, int] = {}
    try:
        _find_totals(totals, keys, state, page_read_breaker().guard)
    except BufferUnavailable:
        pass  # The breaker has logged it.
    except DATABASE_ERRORS as exc:
        logger.error("Totals cannot be read: %s", exc)
    return totals


def load_missing_totals(
    keys: Sequence[CounterKey], recorded: Sequence[RecordResult]
) -> dict[CounterKey, int]:
    """
    As totals_or_none(), for counters of which the buffer has just ``recorded`` hits.

    ``recorded`` has the results in the order of ``keys``. Costs nothing if the buffer knew all
    totals. If not, saves the round trip that reads the state of the buffer.
    """
    totals = {
        key: result.total
        for key, result in zip(keys, recorded, strict=True)
        if result.total is not None
    }
    states: dict[int, tuple[BufferState | None, list[CounterKey]]] = {}
    for key, result in zip(keys, recorded, strict=True):
        if result.total is None:
            states.setdefault(id(result.state), (result.state, []))[1].append(key)
    for state, missing in states.values():
        totals |= totals_or_none(missing, state)
    return totals


def total_or_none(obj: Model, *, counter: str = DEFAULT_COUNTER) -> int | None:
    """As get_hits(), but return None if the total cannot be read. For pages."""
    try:
        key = counter_key(obj, counter=counter)
    except DATABASE_ERRORS as exc:
        logger.error("A total cannot be read: %s", exc)
        return None
    return totals_or_none([key]).get(key)


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
