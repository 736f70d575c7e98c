"""
SQL that folds rows of slots 1..N into slot 0, in the database.

PostgreSQL does it in one statement. SQLite has one writer at a time, so each of its statements may
look for the rows again. On MariaDB and MySQL, the statement that locks the rows returns them: their
sums are inserted, and they are deleted by their ids, since other sessions add rows meanwhile.
"""

# ruff: noqa: S608 - the parts of the statements are our own; values are parameters.
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from django.db import connections

from django_hitcount.db import slots
from django_hitcount.db.slots import ModelDay
from django_hitcount.db.sql import Sql, delete_by_id
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, HitSlot, SlotRow
from django_hitcount.db.tables.hits import match_uncompacted
from django_hitcount.db.total_columns import make_marks, mark_stale
from django_hitcount.db.transactions import limit_waits, take_write_lock

LOCK_WAIT_SECONDS = 0.05
"""How long a fold waits for locks: not as long as hits wait for the rows that it has locked."""

RowPlace: TypeAlias = tuple[Any, ...]
"""The key and the slot of a row: its place in the lock order."""


class Folded(NamedTuple):
    """What one call of fold_rows() has folded."""

    rows: int
    """How many rows of slots 1..N."""

    last: RowPlace | None
    """The place of the last of them; None if there was none."""

    sums: Counter[ModelDay]
    """Their hits by model, counter and day, if they are rows of DailyHitSlot."""


def fold_rows(
    model: type[SlotRow], after: RowPlace | None, *, newest: int, limit: int, using: str
) -> Folded:
    """
    Fold the next rows in lock order into slot 0: add their hits to it, and delete them.

    Locks the rows of slots 1..N first, and then those of slot 0, both in lock order. Leaves out
    rows that another session has locked, if the database can do that, rows with an id above
    ``newest``, and corrections of days. Marks totals that have columns as stale, and adds the hits
    of days to DailyModelHits.

    The caller opens a transaction. Costs two statements on PostgreSQL, and three to five on other
    databases: on MariaDB and MySQL, one more for each further thousand sums. Days cost one more.
    """
    folds = {"postgresql": _fold_at_once, "sqlite": _fold_in_steps, "mysql": _fold_by_id}
    fold = folds[connections[using].vendor]
    with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        take_write_lock(using)
        folded = fold(model, _select_piece(model, after, newest, limit, using), using)
        slots.add_to_models(folded.sums, using=using)
    return folded


def _select_piece(
    model: type[SlotRow], after: RowPlace | None, newest: int, limit: int, using: str
) -> Sql:
    """Return a SELECT of the next rows, which locks them if the database can lock rows."""
    connection = connections[using]
    ops, features = connection.ops, connection.features
    position = ", ".join((*model.KEY, "slot"))
    where, params = f"{match_uncompacted(connection)} AND id <= %s", [newest]
    if model is DailyHitSlot:
        where = f"{where} AND slot < {slots.CORRECTION_SLOT}"  # See corrections._check_rest().
    if after:
        where = f"{where} AND ({position}) > ({', '.join(['%s'] * len(after))})"
        params += after
    lock = ""
    if features.has_select_for_update:
        lock = ops.for_update_sql(skip_locked=features.has_select_for_update_skip_locked)
    table = ops.quote_name(model._meta.db_table)
    select = f"SELECT id, {position}, hits FROM {table}"
    return f"{select} WHERE {where} ORDER BY {position} LIMIT {limit} {lock}".rstrip(), params


def _fold_at_once(model: type[SlotRow], piece: Sql, using: str) -> Folded:
    """
    Lock the rows of ``piece`` and fold them in one statement of PostgreSQL.

    The DELETE takes the rows as they are when they are locked, also if they have changed since the
    statement began, and returns them to the INSERT, which sorts all of them before it locks slot 0.
    """
    select, params = piece
    table = connections[using].ops.quote_name(model._meta.db_table)
    delete = f"DELETE FROM {table} WHERE id = ANY(ARRAY(SELECT id FROM piece)) RETURNING *"
    upsert = _add_to_slot_0(model, "deleted", using)
    parts = [f"piece AS ({select})", f"deleted AS ({delete})", f"added AS ({upsert})"]
    for mark, mark_params in make_marks("deleted", using=using) if model is HitSlot else ():
        parts.append(f"marked AS ({mark})")
        params = [*params, *mark_params]
    _find_by_index(using)
    with connections[using].cursor() as cursor:
        cursor.execute(f"WITH {', '.join(parts)} {_describe(model, 'deleted')}", params)
        return _read_description(model, cursor.fetchall())


def _find_by_index(using: str) -> None:
    """
    Let PostgreSQL find the next rows by an index in their order, in this transaction.

    It knows how many rows are not compacted from the last ANALYZE. If there are many more by now,
    it would read and sort all of them for each piece. The few that are folded it still sorts, but
    at such a high price that it would compile the statement first. Costs a statement.
    """
    names = ("enable_sort", "enable_incremental_sort", "jit")
    settings = ", ".join(f"set_config('{name}', 'off', true)" for name in names)
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {settings}")


def _fold_in_steps(model: type[SlotRow], piece: Sql, using: str) -> Folded:
    """
    Fold the rows of ``piece`` in SQLite, whose one lock for writers is held.

    So each statement finds the same rows, and none has to leave the database to be named.
    """
    select, params = piece
    table = connections[using].ops.quote_name(model._meta.db_table)
    statements: list[tuple[str, Sequence[Any]]] = [
        (_add_to_slot_0(model, "piece", using), ()),
        *(make_marks("piece", using=using) if model is HitSlot else ()),
        (f"DELETE FROM {table} WHERE id IN (SELECT id FROM piece)", ()),
    ]
    with connections[using].cursor() as cursor:
        cursor.execute(f"WITH piece AS ({select}) {_describe(model, 'piece')}", params)
        folded = _read_description(model, cursor.fetchall())
        if folded.rows:
            for statement, more in statements:
                cursor.execute(f"WITH piece AS ({select}) {statement}", [*params, *more])
    return folded


def _add_to_slot_0(model: type[SlotRow], source: str, using: str) -> str:
    """Return a statement that adds the sums of ``source`` to slot 0, in lock order."""
    table, key = connections[using].ops.quote_name(model._meta.db_table), ", ".join(model.KEY)
    return (
        f"INSERT INTO {table} ({key}, slot, hits) "
        f"SELECT {key}, slot, hits FROM (SELECT {key}, 0 AS slot, SUM(hits) AS hits "
        f"FROM {source} GROUP BY {key}) AS folded WHERE true ORDER BY {key} "
        f"ON CONFLICT ({key}, slot) DO UPDATE SET hits = {table}.hits + EXCLUDED.hits"
    )


def _describe(model: type[SlotRow], source: str) -> str:
    """
    Return a SELECT that describes a piece, whose rows are in ``source``.

    Each of its rows has the position of the last row of the piece, and how many rows there are. For
    DailyHitSlot, there is one for each key of DailyModelHits, with the sum of hits and that key.
    """
    position = (*model.KEY, "slot")
    backwards = ", ".join(f"{name} DESC" for name in position)
    last = f"SELECT {', '.join(position)} FROM piece ORDER BY {backwards} LIMIT 1"
    sums = f"SELECT COUNT(*) FROM {source}"
    if model is DailyHitSlot:
        by = ", ".join(DailyModelHits.KEY)
        sums = f"SELECT COUNT(*), SUM(hits), {by} FROM {source} GROUP BY {by}"
    return f"SELECT * FROM ({last}) last, ({sums}) sums"


def _read_description(model: type[SlotRow], rows: Sequence[Any]) -> Folded:
    size = len(model.KEY) + 1
    sums = {row[size + 2 :]: int(row[size + 1]) for row in rows if row[size + 2 :]}
    return Folded(
        rows=sum(row[size] for row in rows),
        last=rows[0][:size] if rows else None,
        sums=Counter(sums),
    )


def _fold_by_id(model: type[SlotRow], piece: Sql, using: str) -> Folded:
    """Lock the rows of ``piece`` and fold them in MariaDB or MySQL, by their ids."""
    with connections[using].cursor() as cursor:
        cursor.execute(*piece)
        rows = cursor.fetchall()
    if not rows:
        return Folded(0, None, Counter())
    pks = [pk for pk, *_ in rows]
    amounts: Counter[tuple[Any, ...]] = Counter()  # It keeps the lock order of the rows.
    sums: Counter[ModelDay] = Counter()
    for _, *key, _, hits in rows:
        amounts[tuple(key)] += hits
        if model is DailyHitSlot:
            content_type_id, _, counter, day = key
            sums[content_type_id, counter, day] += hits
    slots.add_to_slots(model, [(*key, 0, amount) for key, amount in amounts.items()], using)
    if model is HitSlot:
        mark_stale(pks, using=using)
    delete_by_id(model, pks, using)
    return Folded(len(rows), tuple(rows[-1][1:-1]), sums)
