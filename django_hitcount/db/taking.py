"""Take rows of counters out of the tables: to delete them, or to write them under another key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from django_hitcount.db import slots
from django_hitcount.db.sql import Rows, delete_by_id, lock_by_id
from django_hitcount.db.tables import CounterRow, DailyHitSlot, HitSlot, SlotRow
from django_hitcount.db.total_columns import mark_stale
from django_hitcount.db.transactions import take_write_lock

Write = Callable[[Rows], object]
"""What else is written in the transaction, with the rows that it takes."""


def take_rows(
    model: type[CounterRow], some: Sequence[int], using: str, write: Write | None = None
) -> None:
    """
    Lock rows in lock order, delete them, and take their hits out of DailyModelHits.

    Before that, calls ``write`` with what was found of each row: its id and its key, and in a table
    of slots also its slot and hits. The caller opens the transaction.
    """
    take_write_lock(using)
    has_slots = issubclass(model, SlotRow)
    order = (*model.KEY, "slot" if has_slots else "id")
    columns = ("id", *model.KEY, *(("slot", "hits") if has_slots else ()))
    locked = lock_by_id(model, some, columns, order, using)
    if write and locked:
        write(locked)
    pks = [pk for pk, *_ in locked]
    taken: Counter[slots.ModelDay] = Counter()
    for _, content_type_id, _, counter, day, slot, hits in locked if model is DailyHitSlot else ():
        if slot == 0:
            taken[content_type_id, counter, day] -= hits
    if model is HitSlot:
        # If an object was created again with the same key, its column may have the old total.
        mark_stale(pks, using=using)
    delete_by_id(model, pks, using)
    slots.add_to_models(taken, using=using)
