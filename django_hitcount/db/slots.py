"""
SQL on the tables of slots: add hits in bulk, and to the hits of models.

Lock order: every writer locks rows in the order of CounterKey, then day, then slot. So no two of
them can end in a deadlock.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from django.db import connections, models

from django_hitcount import conf
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, ObjectKey, RefusedKey
from django_hitcount.db import transactions
from django_hitcount.db.sql import insert_or_add
from django_hitcount.db.tables import (
    DailyHitSlot,
    DailyModelHits,
    HitSlot,
    RefusedHitSlot,
    SlotRow,
    hits_alias,
)

T = TypeVar("T")

LOCK_WAIT_SECONDS = 1.0
"""How long write_in_slot() waits for a lock before it tries another slot."""

DIFFERENT_SLOTS = 16
"""How many slots are chosen at once: more than a hit ever tries."""

ModelDay: TypeAlias = tuple[int, str, datetime.date]
"""A content type id, a counter and a day: the key of DailyModelHits."""

CORRECTION_SLOT = 32_767
"""The slot of all corrections. Only with the largest SLOTS does a writer of hits choose it, too."""


def choose_slots() -> Iterator[int]:
    """
    Yield random slots for the tries of a writer; never slot 0, which only compaction writes.

    Repeats a slot only after all have been tried, or sixteen of them.
    """
    all_slots = range(1, conf.get_config().slots + 1)
    while True:
        yield from random.sample(all_slots, min(len(all_slots), DIFFERENT_SLOTS))


def write_in_slot(work: Callable[[int], T], *, patience_seconds: float) -> T:
    """
    Run ``work`` in a transaction of its own, with the slot that it may add hits to.

    If it meets locks, tries again with another slot, for ``patience_seconds``. It may run again
    after its COMMIT if the answer to that was lost.

    Raises what transactions.in_transaction() raises.
    """
    using, choices = hits_alias(), choose_slots()

    def write() -> T:
        with transactions.limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
            return work(next(choices))

    return transactions.in_transaction(
        write, using=using, patience_seconds=patience_seconds, repeatable=True
    )


def add_hits(hits: Iterable[NewHits], *, slot: int) -> None:
    """
    Add hits to HitSlot and DailyHitSlot, and refused hits to RefusedHitSlot, in ``slot``.

    The caller opens the transaction. Costs two statements per thousand different counters,
    and one more if hits are refused.
    """
    totals: Counter[CounterKey] = Counter()
    daily: Counter[tuple[CounterKey, datetime.date]] = Counter()
    refused: Counter[RefusedKey] = Counter()
    for hit in hits:
        if not hit.refusal:
            totals[hit.key] += hit.amount
            daily[hit.key, hit.day] += hit.amount
        elif hit.amount > 0:
            refused[RefusedKey(hit.day, hit.key.counter, hit.refusal)] += hit.amount
    add_totals(totals, slot=slot)
    add_daily(daily, slot=slot)
    add_refused(refused, slot=slot)


def add_totals(amounts: Mapping[CounterKey, int], *, slot: int) -> None:
    """Add to HitSlot in ``slot``, in lock order. Costs a statement per thousand rows."""
    rows = [(*key, slot, amounts[key]) for key in sorted(amounts)]
    add_to_slots(HitSlot, rows)


def add_daily(amounts: Mapping[tuple[CounterKey, datetime.date], int], *, slot: int) -> None:
    """Add to DailyHitSlot in ``slot``, in lock order. Costs a statement per thousand rows."""
    rows = [(*key, day, slot, amounts[key, day]) for key, day in sorted(amounts)]
    add_to_slots(DailyHitSlot, rows)


def add_refused(amounts: Mapping[RefusedKey, int], *, slot: int) -> None:
    """Add to RefusedHitSlot in ``slot``, in lock order. Costs a statement per thousand rows."""
    rows = [(*key, slot, amounts[key]) for key in sorted(amounts)]
    add_to_slots(RefusedHitSlot, rows)


def add_to_slots(model: type[SlotRow], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of (*model.KEY, slot, hits). If a row exists, add the hits to it."""
    insert_or_add(model, (*model.KEY, "slot", "hits"), rows)


def add_to_models(rows: Iterable[Sequence[Any]], *, sign: int) -> None:
    """
    Add the hits of rows of DailyHitSlot to DailyModelHits, or with the ``sign`` -1 take them away.

    Whatever adds to slot 0 of DailyHitSlot, or deletes from it, does this in the same transaction.
    So together with slots 1..N, these rows are the hits of a model at any instant.

    Call it last in a transaction: all that fold hits of these days wait for the same few rows.
    Costs a statement per thousand models and days, and none without rows.
    """
    amounts: Counter[ModelDay] = Counter()
    for _, content_type_id, _, counter, day, _, hits in rows:
        amounts[content_type_id, counter, day] += sign * hits
    in_order = [(*key, amounts[key]) for key in sorted(amounts)]
    insert_or_add(DailyModelHits, (*DailyModelHits.KEY, "hits"), in_order)


def check_locks(hits: Iterable[NewHits], *, slot: int) -> None:
    """
    Raise OperationalError if another session has locked a row that ``hits`` go to in ``slot``.

    For MySQL, which can only limit how long a SELECT waits. Costs two statements there, and one
    more if hits are refused. Does nothing on other databases.
    """
    if not transactions.is_mysql(connections[hits_alias()]):
        return
    counting = [hit for hit in hits if not hit.refusal]
    refused = [hit for hit in hits if hit.refusal and hit.amount > 0]
    _check_table(HitSlot, match_counters({hit.key for hit in counting}), slot)
    for day in sorted({hit.day for hit in counting}):
        keys = match_counters({hit.key for hit in counting if hit.day == day})
        _check_table(DailyHitSlot, keys & models.Q(day=day), slot)
    for hit in refused:
        one = models.Q(day=hit.day, counter=hit.key.counter, refusal=hit.refusal)
        _check_table(RefusedHitSlot, one, slot)


def _check_table(model: type[SlotRow], rows: models.Q, slot: int) -> None:
    found = model._default_manager.using(hits_alias()).filter(rows, slot=slot)
    [*found.order_by(*model.KEY).select_for_update(nowait=True).values_list("pk")]


def match_counters(keys: Iterable[CounterKey | ObjectKey]) -> models.Q:
    """
    Return a condition for the rows of ``keys``, with one index range per model and counter.

    For keys of objects, matches the rows of all their counters.
    """
    condition = models.Q(pk__in=[])
    for without_object, group in groupby(sorted(keys, key=_without_object), key=_without_object):
        columns = zip(("content_type_id", "counter"), without_object, strict=False)
        condition |= models.Q(*columns, object_id__in=[key[1] for key in group])
    return condition


def _without_object(key: CounterKey | ObjectKey) -> tuple[int | str, ...]:
    return key[0], *key[2:]
