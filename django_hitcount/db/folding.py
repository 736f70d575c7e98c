"""
SQL that folds rows of slots 1..N into slot 0, in the database.

The caller opens a transaction, and calls lock_rows(), add_to_slot_0() and delete_rows(), in this
order. All three mean the same rows, by their ids, also if other sessions add rows meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from django_hitcount.db import slots
from django_hitcount.db.model_hits import match_rows
from django_hitcount.db.tables import SlotRow

Position: TypeAlias = tuple[Any, ...]
"""The key and the slot of a row: its place in the lock order."""


class LockedRow(NamedTuple):
    """A row of slots 1..N that this transaction has locked."""

    id: int
    position: Position
    hits: int


def lock_rows(
    model: type[SlotRow], *, after: Position | None, newest: int, limit: int, using: str
) -> list[LockedRow]:
    """
    Lock the next rows of slots 1..N in lock order, and return them.

    Leaves out rows that another session has locked, if the database can do that, and rows with an
    id above ``newest``. Costs a query, and on PostgreSQL two statements around it.
    """
    rows = model._default_manager.using(using).filter(is_compacted=False, pk__lte=newest)
    if after:
        rows = rows.filter(_IsAfter(model, after))
    columns = ("pk", *model.KEY, "slot", "hits")
    with _index_order(using):
        found = [*slots.lock_rows(rows, using).values_list(*columns)[:limit]]
    return [LockedRow(pk, tuple(position), hits) for pk, *position, hits in found]


@contextmanager
def _index_order(using: str) -> Iterator[None]:
    """
    Let PostgreSQL read sorted rows by an index in that order, within a transaction.

    It knows how many rows are not compacted from the last ANALYZE. If there are many more by now,
    it would read and sort all of them for each piece. Costs two statements there.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off")
        yield
        cursor.execute(
            "SET LOCAL enable_sort TO DEFAULT; SET LOCAL enable_incremental_sort TO DEFAULT"
        )


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


def add_to_slot_0(model: type[SlotRow], pks: Sequence[int], *, using: str) -> None:
    """Add the hits of locked rows to slot 0, in lock order. Costs a statement."""
    connection = connections[using]
    table, key = connection.ops.quote_name(model._meta.db_table), ", ".join(model.KEY)
    add = f"ON CONFLICT ({key}, slot) DO UPDATE SET hits = {table}.hits + EXCLUDED.hits"
    if connection.vendor == "mysql":
        add = f"ON DUPLICATE KEY UPDATE {table}.hits = {table}.hits + folded.hits"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({key}, slot, hits) "  # noqa: S608 - our own names
            f"SELECT {key}, slot, hits FROM (SELECT {key}, 0 AS slot, SUM(hits) AS hits "
            f"FROM {table} WHERE {match_rows(pks)} GROUP BY {key}) AS folded "
            f"WHERE true ORDER BY {key} {add}"
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
