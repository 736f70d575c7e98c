"""
Read exact totals: the hits in the tables, plus the hits that wait in the buffer.

A flush moves hits from the buffer into the tables. If it does so after the state of the buffer was
read, and before the tables were, the buffer notices it, and both are read again.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model

from django_hitcount import series
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.grouping import split
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.batches import BufferState, RecordResult
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import sums
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.transactions import DATABASE_ERRORS, is_in_transaction
from django_hitcount.exceptions import BufferUnavailable, TotalsMoving
from django_hitcount.outages.page_reads import Guard, page_read_breaker

__all__ = [
    "aget_total",
    "aget_totals",
    "ahits_between",
    "get_total",
    "get_totals",
    "hits_between",
    "reset_totals",
]

ATTEMPTS = 100
"""How often a reader tries. A try fails only if a flush interferes, so the first nearly always
succeeds."""

_MOVING = f"Flushes changed the total during each of {ATTEMPTS} readings. Try again."

KEYS_AT_A_TIME = 5000
"""Counters in one statement and round trip: no database limits the parameters to as few."""

logger = logging.getLogger("django_hitcount")

ModelT = TypeVar("ModelT", bound=Model)


def get_total(obj: Model, *, counter: str = DEFAULT_COUNTER) -> int:
    """
    Return the exact all-time total of a counter on ``obj``.

    Args:
        obj: a saved object of any model.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    Raises InvalidHit if the counter is not declared or the object is not saved. If Redis does not
    know the total, raises the database's error if the database does not answer, and TotalsMoving
    if flushes changed the total during each of 100 readings.

    With Redis, costs one round trip. If Redis does not know the total, costs two and a query, and
    Redis then keeps the total, except within a transaction. Without Redis, costs one query.
    """
    key = counter_key(obj, counter=counter)
    return get_totals_of([key])[key]


def get_totals(objs: Iterable[ModelT], *, counter: str = DEFAULT_COUNTER) -> dict[ModelT, int]:
    """
    Return the exact all-time totals of many objects, by object.

    Takes objects of any models. Raises what get_total() raises. Costs what get_total() costs,
    once for all objects.
    """
    keys = {obj: counter_key(obj, counter=counter) for obj in objs}
    totals = get_totals_of(keys.values())
    return {obj: totals[key] for obj, key in keys.items()}


def get_totals_of(keys: Collection[CounterKey]) -> dict[CounterKey, int]:
    """
    Return the exact totals of ``keys``; see get_total().

    Raises TotalsMoving if flushes changed the totals during each of 100 readings, and the
    database's error if the database does not answer.
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
    missing = set(keys)
    for _ in range(ATTEMPTS):
        state = state or buffer.read_state(missing)
        totals.update(state.totals)
        missing -= totals.keys()
        if missing:
            with guard():
                found, unapplied, keep = _read_sums(missing, state)
            totals.update(buffer.complete_totals(found, state=unapplied, keep=keep))
            missing -= totals.keys()
        if not missing:
            return
        state = None
    raise TotalsMoving(_MOVING)


def _read_sums(
    keys: Collection[CounterKey], state: BufferState
) -> tuple[Mapping[CounterKey, int], BufferState, bool]:
    """
    Read slot sums after ``state``.

    Returns the sums, the state without hits that are in these sums, and whether the buffer may keep
    the totals.
    """
    using = hits_alias()
    with savepoint(using):
        found, applied = sums.read_sums(keys, state.batch_ids(), using=using)
    all_sums = {key: found.get(key, 0) for key in keys}
    return all_sums, state.without(applied), not is_in_transaction(using)


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
    except (TotalsMoving, *DATABASE_ERRORS) as exc:
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
    known = {
        key: result.total
        for key, result in zip(keys, recorded, strict=True)
        if result.total is not None
    }
    if len(known) == len(keys):
        return known
    positions = {at.partition: at for _, _, at in recorded if at}
    return totals_or_none(keys, BufferState(totals=known, positions=positions))


def total_or_none(obj: Model, *, counter: str = DEFAULT_COUNTER) -> int | None:
    """As get_total(), but return None if the total cannot be read. For pages."""
    try:
        key = counter_key(obj, counter=counter)
    except DATABASE_ERRORS as exc:
        logger.error("A total cannot be read: %s", exc)
        return None
    return totals_or_none([key]).get(key)


def reset_totals() -> None:
    """
    Drop the totals and the numbers of visitors that Redis keeps, so that they are read again.

    Call it if something else than this app has changed the tables, or if processes without Redis
    have written hits beside those with Redis. ``manage.py migrate`` and ``flush`` do so. Hits that
    wait are kept.

    Costs nothing without Redis. With Redis, costs a round trip per thousand keys that it has.

    Raises BufferUnavailable. Then some totals may be left: call it again.
    """
    get_buffer().discard_all_totals()


def hits_between(
    obj: Model,
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    counter: str = DEFAULT_COUNTER,
) -> int:
    """
    Return the exact hits on ``obj`` from one calendar day to another, both included.

    Args:
        obj: a saved object of any model.
        first_day: a date, in TIME_ZONE.
        last_day: a date that is not earlier, up to 3,660 days in all.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    Raises InvalidDay if the days are invalid, InvalidHit if another argument is, and the database's
    error if it does not answer.

    Costs a query, and with Redis one round trip.
    """
    key = counter_key(obj, counter=counter)
    return sum(series.read_counters([key], series.day_range(first_day, last_day)).values())


aget_total = sync_to_async(get_total)
"""See get_total()."""

aget_totals = sync_to_async(get_totals)
"""See get_totals()."""

ahits_between = sync_to_async(hits_between)
"""See hits_between()."""
