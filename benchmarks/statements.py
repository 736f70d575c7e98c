"""The least SQL that does the work, written by hand, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from django.db import connection

from django_hitcount.models import DailyHitSlot, HitSlot

ROWS_PER_STATEMENT = 1000

Slots = type[HitSlot] | type[DailyHitSlot]
Statement = tuple[str, list[Any]]

_TYPES = {
    "content_type_id": "integer",
    "object_id": "varchar",
    "counter": "varchar",
    "day": "date",
    "slot": "smallint",
    "hits": "bigint",
}
"""The types of the columns in PostgreSQL."""


def upserts(model: Slots, rows: Sequence[Sequence[Any]]) -> list[Statement]:
    """Statements that add ``rows`` of (*model.KEY, slot, hits) to the table, in this order."""
    chunks = [rows[n : n + ROWS_PER_STATEMENT] for n in range(0, len(rows), ROWS_PER_STATEMENT)]
    return [_upsert(model, chunk) for chunk in chunks]


def _upsert(model: Slots, rows: Sequence[Sequence[Any]]) -> Statement:
    columns = (*model.KEY, "slot", "hits")
    if _vendor() == "postgresql" and len(rows) > 1:
        # The driver spends more time on thousands of placeholders than the server on the rows.
        arrays = ", ".join(f"%s::{_TYPES[column]}[]" for column in columns)
        source = f"SELECT * FROM unnest({arrays})"
        values: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    else:
        row = f"({', '.join(['%s'] * len(columns))})"
        source = f"VALUES {', '.join([row] * len(rows))}"
        values = [*chain.from_iterable(rows)]
    insert = f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) {source}"
    return f"{insert} {_addition(model)}", values


def _addition(model: Slots) -> str:
    table = model._meta.db_table
    if _vendor() == "mysql":
        return f"ON DUPLICATE KEY UPDATE hits = {table}.hits + VALUES(hits)"
    key = ", ".join([*model.KEY, "slot"])
    return f"ON CONFLICT ({key}) DO UPDATE SET hits = {table}.hits + EXCLUDED.hits"


def _vendor() -> str:
    return connection.vendor


def fold(model: Slots) -> list[Statement]:
    """Statements that fold a whole table into slot 0, in one transaction that locks all of it."""
    table, key = model._meta.db_table, ", ".join(model.KEY)
    sums = f"SELECT {key}, 0, SUM(hits) FROM {table} WHERE slot > 0 GROUP BY {key}"
    insert = f"INSERT INTO {table} ({key}, slot, hits) {sums} {_addition(model)}"
    return [(insert, []), (f"DELETE FROM {table} WHERE slot > 0", [])]


def execute(statements: Sequence[Statement]) -> None:
    with connection.cursor() as cursor:
        for sql, parameters in statements:
            cursor.execute(sql, parameters)
