"""Parts of statements: INSERTs that add to rows that exist or leave them unchanged, and ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from django_hitcount.db.sql import Sql

Rows = Sequence[tuple[Any, ...]]
"""Rows to insert, each with a value for each column."""

ROWS_PER_STATEMENT = 1000
"""Rows of one upsert. More rows would not make it faster per row."""


def insert_or_add(
    model: type[models.Model], columns: Sequence[str], rows: Rows, using: str
) -> None:
    """
    Insert rows. If a row exists already, add the value of the last column to it.

    The columns before the last one must have a unique constraint. Costs a statement per
    thousand rows.
    """
    connection = connections[using]
    limit = connection.features.max_query_params or ROWS_PER_STATEMENT * len(columns)
    size = min(ROWS_PER_STATEMENT, limit // len(columns))
    with connection.cursor() as cursor:
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            cursor.execute(*_upsert_statement(connection, model, columns, chunk))


def _upsert_statement(
    connection: BaseDatabaseWrapper, model: type[models.Model], columns: Sequence[str], rows: Rows
) -> Sql:
    """
    Return an INSERT of ``rows`` that adds to the last column of rows that exist already.

    Django knows the syntax of each server, but only to overwrite columns. This function turns the
    assignment into an addition.
    """
    quote = connection.ops.quote_name
    *key, last = columns
    table, added = quote(model._meta.db_table), quote(last)
    overwrite = connection.ops.on_conflict_suffix_sql(
        list(model._meta.concrete_fields), OnConflict.UPDATE, [last], key
    )
    add = overwrite.replace(f"{added} = ", f"{added} = {table}.{added} + ", 1)
    is_postgresql = connection.vendor == "postgresql"
    source, values = _arrays(connection, model, columns, rows) if is_postgresql else _values(rows)
    into = f"INSERT INTO {table} ({', '.join(map(quote, columns))})"
    return f"{into} {source} {add}", values


def _values(rows: Rows) -> Sql:
    row = f"({', '.join(['%s'] * len(rows[0]))})"
    return f"VALUES {', '.join([row] * len(rows))}", [value for row in rows for value in row]


def _arrays(
    connection: BaseDatabaseWrapper, model: type[models.Model], columns: Sequence[str], rows: Rows
) -> Sql:
    """Return the rows as an array per column: psycopg is slow with thousands of placeholders."""
    types = [str(model._meta.get_field(column).db_type(connection)) for column in columns]
    arrays = ", ".join(f"%s::{type_.partition('(')[0]}[]" for type_ in types)
    values = [list(column) for column in zip(*rows, strict=True)]
    return f"SELECT * FROM unnest({arrays})", values  # noqa: S608 - types of our own columns


def insert_or_ignore(
    model: type[models.Model], columns: Sequence[str], values: Sequence[Any], using: str
) -> bool:
    """
    Insert a row. Return False if a row with its unique key exists already.

    If another session is inserting one, waits until that transaction ends. Check the values before
    you call it: MySQL also ignores errors of values that do not fit.
    """
    connection = connections[using]
    quote, ops = connection.ops.quote_name, connection.ops
    insert = ops.insert_statement(on_conflict=OnConflict.IGNORE)
    ignore = ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], [])
    places = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f"{insert} {quote(model._meta.db_table)} ({', '.join(map(quote, columns))}) "
            f"VALUES ({places}) {ignore}",
            values,
        )
        return bool(cursor.rowcount)


def match_rows(pks: Sequence[int]) -> str:
    """
    Return a condition for rows with these ids.

    Has no parameters, since a driver takes longer for thousands of them than the server for the
    rows.
    """
    return f"id IN ({', '.join(map(str, pks))})"
