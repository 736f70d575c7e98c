"""
SQL that folds rows of slots 1..N into slot 0, in the database.

PostgreSQL does it in one statement. Other databases lock the rows, add them up and delete them in
three statements, which mean the same rows, by their ids, also if other sessions add rows meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from django_hitcount.db import slots, stale_totals
from django_hitcount.db.model_hits import ModelDay, match_rows
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, HitSlot, SlotRow

Position: TypeAlias = tuple[Any, ...]
"""The key and the slot of a row: its place in the lock order."""


class Folded(NamedTuple):
    """What one call of fold_rows() has folded."""

    rows: int
    """How many rows of slots 1..N."""

    last: Position | None
    """The position of the last of them; None if there was none."""

    sums: Counter[ModelDay]
    """Their hits by model, counter and day, if they are rows of DailyHitSlot."""


def fold_rows(
    model: type[SlotRow],
    *,
    after: Position | None,
    newest: int,
    limit: int,
    columns: Collection[tuple[int, str]],
    using: str,
) -> Folded:
    """
    Fold the next rows in lock order into slot 0: add their hits to it, and delete them.

    Locks the rows of slots 1..N first, and then those of slot 0, both in lock order. Leaves out
    rows that another session has locked, if the database can do that, and rows with an id above
    ``newest``. Marks the totals of HitSlot that are in ``columns`` as stale.

    The caller opens a transaction. Costs two statements on PostgreSQL, and three or four on other
    databases.
    """
    rows = model._default_manager.using(using).filter(is_compacted=False, pk__lte=newest)
    if after:
        rows = rows.filter(_IsAfter(model, after))
    piece = slots.lock_rows(rows, using)[:limit]
    columns = columns if model is HitSlot else ()
    fold = _fold_at_once if connections[using].vendor == "postgresql" else _fold_by_id
    return fold(model, piece, columns, using)


class _IsAfter(models.Func):
    """Compares rows with a position, so that the database finds the next ones by index."""

    output_field = models.BooleanField()

    def __init__(self, model: type[SlotRow], position: Position) -> None:
        columns = map(models.F, (*model.KEY, "slot"))
        super().__init__(*columns, *map(models.Value, position))

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra_context: Any
    ) -> tuple[str, list[Any]]:
        parts = [compiler.compile(part) for part in self.get_source_expressions()]
        texts, half = [text for text, _ in parts], len(parts) // 2
        values = [value for _, some in parts for value in some]
        return f"({', '.join(texts[:half])}) > ({', '.join(texts[half:])})", values


def _fold_by_id(
    model: type[SlotRow],
    piece: models.QuerySet[Any, Any],
    columns: Collection[tuple[int, str]],
    using: str,
) -> Folded:
    """Lock the rows of ``piece`` and fold them. The statements name their ids."""
    rows = [*piece.values_list("pk", *model.KEY, "slot", "hits")]
    if not rows:
        return Folded(0, None, Counter())
    pks = [row[0] for row in rows]
    add_to_slot_0(model, pks, using=using)
    stale_totals.mark_counters_of(pks, columns, using=using)
    delete_rows(model, pks, using=using)
    sums: Counter[ModelDay] = Counter()
    if model is DailyHitSlot:
        for _, content_type_id, _, counter, day, _, hits in rows:
            sums[content_type_id, counter, day] += hits
    return Folded(len(rows), tuple(rows[-1][1:-1]), sums)


def add_to_slot_0(model: type[SlotRow], pks: Sequence[int], *, using: str) -> None:
    """Add the hits of locked rows to slot 0, in lock order. Costs a statement."""
    connection = connections[using]
    table = connection.ops.quote_name(model._meta.db_table)
    source = f"{table} WHERE {match_rows(pks)}"
    with connection.cursor() as cursor:
        cursor.execute(_make_upsert(model, connection, source))


def _make_upsert(model: type[SlotRow], connection: BaseDatabaseWrapper, source: str) -> str:
    """Return a statement that adds the sums of ``source`` to slot 0, in lock order."""
    table, key = connection.ops.quote_name(model._meta.db_table), ", ".join(model.KEY)
    add = f"ON CONFLICT ({key}, slot) DO UPDATE SET hits = {table}.hits + EXCLUDED.hits"
    if connection.vendor == "mysql":
        add = f"ON DUPLICATE KEY UPDATE {table}.hits = {table}.hits + folded.hits"
    return (
        f"INSERT INTO {table} ({key}, slot, hits) "  # noqa: S608 - our own names
        f"SELECT {key}, slot, hits FROM (SELECT {key}, 0 AS slot, SUM(hits) AS hits "
        f"FROM {source} GROUP BY {key}) AS folded WHERE true ORDER BY {key} {add}"
    )


def delete_rows(model: type[SlotRow], pks: Sequence[int], *, using: str) -> None:
    """
    Delete locked rows. Costs a statement.

    MariaDB and MySQL would scan a small table, and then also wait for rows that other sessions have
    locked. So they look up each row by its id in a join.
    """
    connection = connections[using]
    table = connection.ops.quote_name(model._meta.db_table)
    rows = f"FROM {table} WHERE {match_rows(pks)}"
    if connection.vendor == "mysql":
        # The LIMIT keeps the server from merging the subquery with the join.
        ids = f"SELECT id FROM {table} WHERE {match_rows(pks)} LIMIT {len(pks)}"  # noqa: S608
        rows = (
            f"hit FROM ({ids}) folded "
            f"STRAIGHT_JOIN {table} hit FORCE INDEX (PRIMARY) ON hit.id = folded.id"
        )
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE {rows}")


def _fold_at_once(
    model: type[SlotRow],
    piece: models.QuerySet[Any, Any],
    columns: Collection[tuple[int, str]],
    using: str,
) -> Folded:
    """
    Lock the rows of ``piece`` and fold them in one statement of PostgreSQL.

    The DELETE takes the rows as they are when they are locked, also if they have changed since the
    statement began, and returns them to the INSERT, which sorts all of them before it locks slot 0.
    """
    connection = connections[using]
    table, key = connection.ops.quote_name(model._meta.db_table), ", ".join(model.KEY)
    found = piece.values_list("pk", *model.KEY, "slot")
    select, params = found.query.get_compiler(using).as_sql()
    delete = f"DELETE FROM {table} WHERE id = ANY(ARRAY(SELECT pk FROM piece)) RETURNING *"  # noqa: S608
    upsert = _make_upsert(model, connection, "deleted")
    parts = [f"piece AS ({select})", f"deleted AS ({delete})", f"added AS ({upsert})"]
    if columns:
        mark, mark_params = stale_totals.make_mark(columns, "deleted", using=using)
        parts.append(f"marked AS ({mark})")
        params = (*params, *mark_params)
    order = ", ".join(f"{name} DESC" for name in (*model.KEY, "slot"))
    last = f"SELECT {key}, slot FROM piece ORDER BY {order} LIMIT 1"  # noqa: S608
    sums = "SELECT COUNT(*), SUM(hits) FROM deleted"
    if model is DailyHitSlot:
        by = ", ".join(DailyModelHits.KEY)
        sums = f"SELECT COUNT(*), SUM(hits), {by} FROM deleted GROUP BY {by}"  # noqa: S608
    _find_by_index(using)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH {', '.join(parts)} SELECT * FROM ({last}) last, ({sums}) sums",  # noqa: S608
            params,
        )
        rows = cursor.fetchall()
    size = len(model.KEY) + 1
    return Folded(
        rows=sum(row[size] for row in rows),
        last=rows[0][:size] if rows else None,
        sums=Counter({row[size + 2 :]: int(row[size + 1]) for row in rows if row[size + 2 :]}),
    )


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
