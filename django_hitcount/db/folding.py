"""
Fold rows of slots 1..N into slot 0.

PostgreSQL does it in one statement. On other databases, the statement that locks the rows returns
them: their sums are added to slot 0, and they are deleted by their ids, since other sessions add
rows meanwhile.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from django.db import connections

from django_hitcount.db import slots
from django_hitcount.db.sql import Rows, Sql, delete_by_id
from django_hitcount.db.tables import DailyHitSlot, SlotRow, hits_alias
from django_hitcount.db.tables.hits import match_uncompacted
from django_hitcount.db.taking import mark_deleted
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


def fold_rows(model: type[SlotRow], after: RowPlace, *, newest: int, limit: int) -> Rows:
    """
    Fold the next rows in lock order into slot 0: add their hits to it, and delete them.

    Locks the rows of slots 1..N first, and then those of slot 0, both in lock order. Leaves out
    rows that another session has locked, if the database can do that, rows with an id above
    ``newest``, and corrections of days. Marks totals that have columns as stale, and adds the hits
    of days to DailyModelHits. Returns the rows that it has folded: their ids, places and hits.

    The caller opens a transaction. Costs two statements on PostgreSQL. Costs three on others, one
    more on SQLite, and one for each further thousand sums (on SQLite, 140). Totals with columns
    cost one more, and so do days.
    """
    using = hits_alias()
    fold = _fold_at_once if connections[using].vendor == "postgresql" else _fold_in_steps
    with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        take_write_lock(using)
        rows = fold(model, _select_next(model, after, newest, limit))
        mark_deleted(model, rows)
        if model is DailyHitSlot:
            slots.add_to_models(rows, sign=1)
    return rows


def _select_next(model: type[SlotRow], after: RowPlace, newest: int, limit: int) -> Sql:
    """
    Return a SELECT of the ids, places and hits of the next rows, which locks them if the database
    can lock rows.
    """
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
    select = f"SELECT id, {place}, hits FROM {ops.quote_name(model._meta.db_table)}"
    return f"{select} WHERE {where} ORDER BY {place} LIMIT {limit} {lock}", params


def _fold_at_once(model: type[SlotRow], select: Sql) -> Rows:
    """
    Fold the selected rows in one statement of PostgreSQL, and return them.

    The DELETE takes the rows as they are when they are locked, also if they have changed since the
    statement began, and returns them to the INSERT, which sorts all of them before it locks slot 0.
    """
    connection = connections[hits_alias()]
    table, key = connection.ops.quote_name(model._meta.db_table), ", ".join(model.KEY)
    delete = f"DELETE FROM {table} WHERE id = ANY(ARRAY(SELECT id FROM piece)) RETURNING *"
    add = (
        f"INSERT INTO {table} ({key}, slot, hits) "
        f"SELECT {key}, 0, SUM(hits) FROM deleted GROUP BY {key} ORDER BY {key} "
        f"ON CONFLICT ({key}, slot) DO UPDATE SET hits = {table}.hits + EXCLUDED.hits"
    )
    piece, params = select
    parts = f"piece AS ({piece}), deleted AS ({delete}), added AS ({add})"
    found = f"SELECT id, {key}, slot, hits FROM deleted ORDER BY {key}, slot"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {FIND_BY_INDEX}")
        cursor.execute(f"WITH {parts} {found}", params)
        rows: Rows = cursor.fetchall()
    return rows


def _fold_in_steps(model: type[SlotRow], select: Sql) -> Rows:
    """Lock the selected rows, fold them, and return them."""
    with connections[hits_alias()].cursor() as cursor:
        cursor.execute(*select)
        rows: Rows = cursor.fetchall()
    amounts: Counter[tuple[Any, ...]] = Counter()  # It keeps the lock order of the rows.
    for _, *key, _, hits in rows:
        amounts[tuple(key)] += hits
    slots.add_to_slots(model, [(*key, 0, hits) for key, hits in amounts.items()])
    delete_by_id(model, [pk for pk, *_ in rows])
    return rows
