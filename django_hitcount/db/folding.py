"""
Fold rows of slots 1..N into slot 0.

The statement that locks the rows returns them: their sums are added to slot 0, and they are deleted
by their ids, since other sessions add rows meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from django.db import connections

from django_hitcount.db import slots
from django_hitcount.db.sql import Rows
from django_hitcount.db.tables import DailyHitSlot, SlotRow, hits_alias
from django_hitcount.db.tables.hits import match_uncompacted
from django_hitcount.db.taking import delete_locked
from django_hitcount.db.transactions import limit_waits, take_write_lock

LOCK_WAIT_SECONDS = 0.05
"""How long a fold waits for locks: not as long as hits wait for the rows that it has locked."""

FIND_BY_INDEX = ", ".join(
    f"set_config('{name}', 'off', true)"
    for name in ("enable_sort", "enable_incremental_sort", "enable_seqscan", "jit")
)
"""
Lets PostgreSQL find the next rows by an index in their order, and by their ids, in this
transaction.

It knows how many rows are not compacted from the last ANALYZE. If there are many more by now, it
would read and sort all of them for each piece. What it has to sort or to read nevertheless has such
a high price that it would compile the statement first.
"""

RowPlace: TypeAlias = Sequence[Any]
"""The key and the slot of a row: its place in the lock order."""


def fold_rows(
    model: type[SlotRow], after: RowPlace, *, newest: int, limit: int
) -> Sequence[RowPlace]:
    """
    Fold the next rows in lock order into slot 0: add their hits to it, and delete them.

    Locks the rows of slots 1..N first, and then those of slot 0, both in lock order. Leaves out
    rows that another session has locked, if the database can do that, rows with an id above
    ``newest``, and corrections of days. Marks totals that have columns as stale, and adds the hits
    of days to DailyModelHits. Returns the places of the rows that it has folded.

    The caller opens a transaction. Costs three statements, one more on PostgreSQL and SQLite, and
    one for each further thousand sums (on SQLite, 140). Days cost one more.
    """
    using = hits_alias()
    with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        take_write_lock(using)
        rows = _lock_next(model, after, newest, limit)
        amounts: Counter[tuple[Any, ...]] = Counter()  # It keeps the lock order of the rows.
        for _, *key, _, hits in rows:
            amounts[tuple(key)] += hits
        slots.add_to_slots(model, [(*key, 0, hits) for key, hits in amounts.items()])
        delete_locked(model, rows)
        if model is DailyHitSlot:
            slots.add_to_models(rows, sign=1)
    return [place for _, *place, _ in rows]


def _lock_next(model: type[SlotRow], after: RowPlace, newest: int, limit: int) -> Rows:
    """Lock the next rows, if the database can do that. Returns their ids, places and hits."""
    connection = connections[hits_alias()]
    features, ops = connection.features, connection.ops
    place = ", ".join((*model.KEY, "slot"))
    where, params = f"{match_uncompacted(connection)} AND id <= %s", [newest]
    if model is DailyHitSlot:
        where = f"{where} AND slot < {slots.CORRECTION_SLOT}"  # See corrections._check_rest().
    if after:
        where = f"{where} AND ({place}) > ({', '.join(['%s'] * len(after))})"
        params += after
    lock = ""
    if features.has_select_for_update:
        lock = ops.for_update_sql(skip_locked=features.has_select_for_update_skip_locked)
    select = f"SELECT id, {place}, hits FROM {ops.quote_name(model._meta.db_table)}"  # noqa: S608
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT {FIND_BY_INDEX}")
        cursor.execute(f"{select} WHERE {where} ORDER BY {place} LIMIT {limit} {lock}", params)
        rows: Rows = cursor.fetchall()
    return rows
