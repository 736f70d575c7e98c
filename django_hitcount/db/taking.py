"""Take rows of counters out of the tables: to delete them, or to write them under another key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import slots
from django_hitcount.db.sql import Rows, delete_by_id, lock_by_id
from django_hitcount.db.tables import CounterRow, DailyHitSlot, HitSlot, SlotRow, hits_alias
from django_hitcount.db.tables.hits import Row
from django_hitcount.db.total_columns import mark_stale
from django_hitcount.db.transactions import take_write_lock

Taken = Sequence[dict[str, Any]]
"""Rows by the names of their columns."""

Write = Callable[[Taken], object]
"""What else is written in the transaction, with the rows that it takes."""


def take_rows(model: type[CounterRow], some: Sequence[int], write: Write | None = None) -> Rows:
    """
    Lock rows in lock order, delete them, and take their hits out of DailyModelHits.

    Before that, calls ``write`` with the rows. Returns the id and the key of each, and in a table
    of slots also its slot and hits. The caller opens the transaction.
    """
    take_write_lock(hits_alias())
    has_slots = issubclass(model, SlotRow)
    order = (*model.KEY, "slot" if has_slots else "id")
    columns = ["id", *model.KEY]
    if write or has_slots:  # Nobody else needs sketches, which are large.
        names = [field.attname for field in model._meta.concrete_fields if not field.generated]
        columns += [name for name in names if name not in columns]
    locked = lock_by_id(model, some, columns, order)
    if write and locked:
        write([dict(zip(columns, row, strict=True)) for row in locked])
    delete_by_id(model, [pk for pk, *_ in locked])
    mark_deleted(model, locked)
    if model is DailyHitSlot:
        of_models = [row for row in locked if row[-2] == 0]
        slots.add_to_models(of_models, sign=-1)
    return locked


def mark_deleted(model: type[Row], rows: Rows) -> None:
    """
    Mark the totals of deleted rows of HitSlot that have columns. Each row begins with its id and
    key.

    If an object is created again with the same key, its column may have the old total.
    """
    if model is HitSlot:
        mark_stale(CounterKey(*row[1:4]) for row in rows)
