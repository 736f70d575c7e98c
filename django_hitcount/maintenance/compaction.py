"""Compact: fold slots 1..N of each counter into slot 0, which then has the sum of their rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Max, Q

from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import daily_visitors, locks, slots
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import DailyHitSlot, HitSlot, RefusedHitSlot, SlotRow
from django_hitcount.db.transactions import in_transaction

BATCH_SIZE = 500
"""Rows that one transaction folds: few enough for the 999 parameters of an old SQLite."""

PATIENCE_SECONDS = 30.0
"""How long to retry a batch that meets locks before the compaction fails."""

LOCK_WAIT_SECONDS = 0.05
"""How long a fold waits for locks: not as long as hits wait for the rows that it has locked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """What a compaction did."""

    rows: int = 0
    """Rows that were folded into slot 0, or into the number of visitors of a day, and deleted."""

    batches: int = 0
    """How many transactions folded them."""


def compact(*, batch_size: int = BATCH_SIZE) -> Compaction:
    """
    Fold slots 1..N of every counter into slot 0. No total changes at any time.

    Also replaces the rows of visitors of closed days by their number. A day is closed from the end
    of the next day on.

    Leaves rows to the next call if they were written after the start, or if another session has
    locked them (SQLite and MariaDB before 10.6 wait for them). Any number of compactions and
    flushes may run at the same time.

    Costs a read and a transaction of four statements per ``batch_size`` rows.

    Raises OperationalError if a batch meets locks for longer than 30 seconds. Rows that were
    folded before stay folded.
    """
    using = hits_alias()
    sizes = [
        size
        for model in (HitSlot, DailyHitSlot, RefusedHitSlot)
        for size in _fold_all(model, batch_size, using)
    ]
    sizes += daily_visitors.fold_closed_days(batch_size=batch_size)
    return Compaction(rows=sum(sizes), batches=len(sizes))


def _fold_all(model: type[SlotRow], batch_size: int, using: str) -> list[int]:
    newest = model._default_manager.using(using).aggregate(newest=Max("pk"))["newest"]
    sizes: list[int] = []
    while keys := _uncompacted(model, newest, batch_size, using):
        fold = partial(_fold, model, keys, batch_size, using)
        size = in_transaction(fold, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)
        if not size:
            break  # Other sessions have locked the rest.
        sizes.append(size)
    return sizes


def _uncompacted(
    model: type[SlotRow], newest: int | None, batch_size: int, using: str
) -> list[tuple[Any, ...]]:
    """Read the keys of the next rows to fold, by index and without a lock."""
    if newest is None:
        return []
    rows = (
        model._default_manager.using(using)
        .filter(slot__gt=0, pk__lte=newest)
        .order_by("slot", *model.KEY)
        .values_list(*model.KEY)[:batch_size]
    )
    return sorted(set(rows))


def _fold(model: type[SlotRow], keys: list[tuple[Any, ...]], batch_size: int, using: str) -> int:
    """
    Fold up to ``batch_size`` rows of ``keys``.

    Locks the rows of slots 1..N in key order, then those of slot 0. Leaves out rows that another
    session has locked: while it waited for them, hits would wait for the rows that it has locked.
    """
    manager = model._default_manager.using(using)
    locked = slots.lock_rows(manager.filter(_match_keys(keys, model), slot__gt=0), using)
    rows = list(locked.values_list("pk", "hits", *model.KEY)[:batch_size])
    amounts: Counter[tuple[Any, ...]] = Counter()
    for _, hits, *key in rows:
        amounts[tuple(key)] += hits
    with locks.limit_waits(using, seconds=LOCK_WAIT_SECONDS):
        slots.add_to_slots(model, [(*key, 0, amounts[key]) for key in sorted(amounts)], using)
        # Within limit_waits(): MariaDB scans a small table instead of using its index, and then
        # also waits for rows that other sessions have locked.
        manager.filter(pk__in=[pk for pk, *_ in rows])._raw_delete(using)
    return len(rows)


def _match_keys(keys: list[tuple[Any, ...]], model: type[SlotRow]) -> Q:
    """Return a condition for the rows of ``keys``. It may also match other rows of these days."""
    if model is RefusedHitSlot:
        columns = zip(model.KEY, zip(*keys, strict=True), strict=True)
        return Q(**{f"{column}__in": {*values} for column, values in columns})
    condition = slots.match_counters({CounterKey(*key[:3]) for key in keys})
    if model is DailyHitSlot:
        condition &= Q(day__in={key[3] for key in keys})
    return condition
