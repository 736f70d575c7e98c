"""Fold slots 1..N of every counter into slot 0."""

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
"""Rows folded in one transaction: few enough for the 999 parameters of an old SQLite."""

PATIENCE_SECONDS = 30.0
"""How long to retry a batch that meets locks before the compaction fails."""

LOCK_WAIT_SECONDS = 0.05
"""How long a fold waits for locks: less than hits wait for the rows that it holds meanwhile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """What a compaction did."""

    rows: int = 0
    """Rows that were deleted, after their sum went to slot 0 or to the visitors of a day."""

    batches: int = 0
    """Transactions that did it."""


def compact(*, batch_size: int = BATCH_SIZE) -> Compaction:
    """
    Fold slots 1..N of every counter into slot 0; no sum changes at any instant.

    Visitors of closed days, who were counted one by one, become a number.

    Rows written after the start are left for the next call, and so are rows that another
    session has locked (SQLite and MariaDB before 10.6 wait for them). Costs a read, and then
    four statements in one transaction, per ``batch_size`` rows. Any number of compactions and
    flushes may run at the same time.

    Raises OperationalError if a batch meets locks for longer than 30 seconds; what was
    folded before stays folded.
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
    """Keys of the next rows to fold, read by index and without a lock."""
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

    Locks rows 1..N in key order and then slot 0, as every other writer does. Leaves out rows
    that another session has locked: waiting for one of them would keep hits waiting for all
    rows that are locked already.
    """
    manager = model._default_manager.using(using)
    locked = slots.lock_rows(manager.filter(_match_keys(keys, model), slot__gt=0), using)
    rows = list(locked.values_list("pk", "hits", *model.KEY)[:batch_size])
    amounts: Counter[tuple[Any, ...]] = Counter()
    for _, hits, *key in rows:
        amounts[tuple(key)] += hits
    with locks.limit_waits(using, seconds=LOCK_WAIT_SECONDS):
        slots.add_to_slots(model, [(*key, 0, amounts[key]) for key in sorted(amounts)], using)
        # MariaDB scans a small table instead of its index, and meets locks of other sessions.
        manager.filter(pk__in=[pk for pk, *_ in rows])._raw_delete(using)
    return len(rows)


def _match_keys(keys: list[tuple[Any, ...]], model: type[SlotRow]) -> Q:
    """A condition for the rows of ``keys``, and perhaps for more rows of the same days."""
    if model is RefusedHitSlot:
        columns = zip(model.KEY, zip(*keys, strict=True), strict=True)
        return Q(**{f"{column}__in": {*values} for column, values in columns})
    condition = slots.match_counters({CounterKey(*key[:3]) for key in keys})
    if model is DailyHitSlot:
        condition &= Q(day__in={key[3] for key in keys})
    return condition
