"""SQL that deletes the rows of deleted objects from every table that counts by object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.db import slots
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import (
    Correction,
    CounterRow,
    DailyHitSlot,
    DailyModelHits,
    DailyVisitors,
    HitSlot,
    SeenVisitor,
    SlotRow,
)
from django_hitcount.db.total_columns import mark_stale
from django_hitcount.db.transactions import in_transaction, limit_waits, take_write_lock

ROWS_PER_TRANSACTION = 500
"""Few enough for the 999 parameters of an old SQLite, and to hold locks only briefly."""

LOCK_WAIT_SECONDS = 1.0
"""How long a statement waits for a lock before the transaction rolls back and is tried again."""

TABLES: tuple[type[CounterRow], ...] = (
    HitSlot,
    DailyHitSlot,
    SeenVisitor,
    DailyVisitors,
    Correction,
)
"""SeenVisitor before DailyVisitors: a fold turns rows of the first into rows of the second."""


def delete_rows_of(objects: Collection[ObjectKey], *, patience_seconds: float) -> set[ObjectKey]:
    """
    Delete the rows of objects from all tables. Returns the objects that had any.

    A table is done when a read without a lock finds nothing. A read with a lock would prove
    nothing: if it waits for a compaction, it does not see the row that the compaction inserts. A
    read without a lock sees the old rows until the compaction commits, and then the new one.

    Costs a query per table, and a query and a transaction of two statements per 500 rows.

    Raises OperationalError if a batch meets locks for longer than ``patience_seconds``.
    """
    using = hits_alias()
    lock_wait_seconds = min(LOCK_WAIT_SECONDS, patience_seconds)
    found: set[ObjectKey] = set()
    for model in TABLES if objects else ():
        rows = model._default_manager.using(using).filter(slots.match_counters(objects))
        columns = rows.values_list("pk", "content_type_id", "object_id")
        while some := [*columns[:ROWS_PER_TRANSACTION]]:
            delete = partial(_delete_rows, model, [pk for pk, *_ in some], using, lock_wait_seconds)
            in_transaction(delete, using=using, patience_seconds=patience_seconds, repeatable=True)
            found |= {(content_type_id, object_id) for _, content_type_id, object_id in some}
    return found


def _delete_rows(
    model: type[CounterRow], some: list[int], using: str, lock_wait_seconds: float
) -> None:
    """Lock rows in lock order, delete them, and take their hits out of DailyModelHits."""
    rows = model._default_manager.using(using).filter(pk__in=some)
    take_write_lock(using)
    order = (*model.KEY, "slot" if issubclass(model, SlotRow) else "pk")
    columns = (*DailyModelHits.KEY, "slot", "hits") if model is DailyHitSlot else ()
    with limit_waits(using, seconds=lock_wait_seconds):
        locked = [*rows.order_by(*order).select_for_update().values_list("pk", *columns)]
        pks = [pk for pk, *_ in locked]
        taken: Counter[slots.ModelDay] = Counter()
        for _, content_type_id, counter, day, slot, hits in locked if columns else ():
            if slot == 0:
                taken[content_type_id, counter, day] -= hits
        if model is HitSlot:
            # If an object was created again with the same key, its column may have the old total.
            mark_stale(pks, using=using)
        rows.filter(pk__in=pks)._raw_delete(using)
        slots.add_to_models(taken, using=using)
