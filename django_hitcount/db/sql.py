"""
Statements that Django has no function for: upserts, long results, deletions, the clock.

Long results are spooled: they wait in a temporary file. A cursor that stays open until a slow
reader has taken them all would keep a connection of MySQL and MariaDB from reading anything else.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, partialmethod
from tempfile import TemporaryFile
from typing import Any

from django.conf import settings
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict
from django.utils import timezone

from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import VisitorSalt, hits_alias
from django_hitcount.db.transactions import in_transaction

Sql = tuple[str, list[Any]]
"""A statement, or a part of one, and its parameters."""

Rows = Sequence[tuple[Any, ...]]
"""Rows to insert, each with a value for each column."""

ROWS_AT_A_TIME = 1000

ROWS_PER_STATEMENT = 1000
"""Rows of one upsert. More rows would not make it faster per row."""

DELETE_PIECE_SIZE = 500
"""Rows deleted by one statement: few enough for the 999 parameters of an old SQLite."""

DELETE_PATIENCE_SECONDS = 5.0
"""How long to retry the deletion of a piece that meets locks: the next run can delete it, too."""


def read_rows(sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a SELECT in the database of the counts. A transaction around it survives an error."""
    using = hits_alias()
    with savepoint(using), connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def spool_rows(sql: str, params: Mapping[str, Any]) -> Iterator[list[list[Any]]]:
    """
    Run a SELECT of texts and whole numbers, and yield its rows, a thousand at a time.

    They may be more than fit into memory.
    """
    with TemporaryFile("w+") as file:
        with _open_cursor(connections[hits_alias()]) as cursor:
            cursor.execute(sql, params)
            while rows := cursor.fetchmany(ROWS_AT_A_TIME):
                file.write(json.dumps(rows, default=int) + "\n")  # A sum is a Decimal.
        file.seek(0)
        yield from map(json.loads, file)


def _open_cursor(connection: Any) -> Any:
    """Open a cursor whose rows stay in the database until they are fetched."""
    if connection.vendor == "mysql":
        # Those of Django hold all rows. The driver is installed only with MySQL and MariaDB.
        from MySQLdb.cursors import SSCursor  # type: ignore[import-untyped]

        connection.ensure_connection()
        return connection._prepare_cursor(connection.connection.cursor(SSCursor))
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return connection.cursor()
    return connection.chunked_cursor()


def insert_or_add(model: type[models.Model], columns: Sequence[str], rows: Rows) -> None:
    """
    Insert rows. If a row exists already, add the value of the last column to it.

    The columns before the last one must have a unique constraint. Costs a statement per
    thousand rows.
    """
    connection = connections[hits_alias()]
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
    """
    Return the rows as an array per column: psycopg is slow with thousands of placeholders.

    It also takes time for each value of an array. So a column with the same value in all rows is
    no array, unless it is the last.
    """
    selected, arrays, names, same, values = [], [], [], [], []
    for column, found in zip(columns, zip(*rows, strict=True), strict=True):
        type_ = str(model._meta.get_field(column).db_type(connection)).partition("(")[0]
        if column != columns[-1] and found.count(found[0]) == len(found):
            selected.append(f"%s::{type_}")
            same.append(found[0])
        else:
            selected.append(column)
            names.append(column)
            arrays.append(f"%s::{type_}[]")
            values.append([*found])
    source = f"unnest({', '.join(arrays)}) AS new ({', '.join(names)})"
    return f"SELECT {', '.join(selected)} FROM {source}", [*same, *values]  # noqa: S608 - columns


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


def delete_in_pieces(old: models.QuerySet[Any, Any]) -> int:
    """
    Delete the rows of ``old`` in its order, 500 per transaction. Returns their number.

    Costs a read, and per 500 rows a read and a transaction of one statement.

    Raises OperationalError if a piece meets locks for longer than 5 seconds.
    """
    deleted = 0
    while pks := [*old.values_list("pk", flat=True)[:DELETE_PIECE_SIZE]]:
        delete = partial(old.order_by().filter(pk__in=pks)._raw_delete, old.db)
        deleted += in_transaction(
            delete, using=old.db, patience_seconds=DELETE_PATIENCE_SECONDS, repeatable=True
        )
    return deleted


def match_rows(pks: Sequence[int]) -> str:
    """
    Return a condition for rows with these ids.

    Has no parameters, since a driver takes longer for thousands of them than the server for the
    rows.
    """
    return f"id IN ({', '.join(map(str, pks))})"


def lock_by_id(
    model: type[models.Model],
    pks: Sequence[int],
    columns: Sequence[str],
    order: Sequence[str],
) -> Rows:
    """
    Lock the rows that still exist, in ``order``. Returns ``columns`` of each. Costs a statement.

    MariaDB and MySQL sort the ids without a lock, and lock each row as they look it up.
    """
    using = hits_alias()
    if connections[using].vendor != "mysql":
        rows = model._default_manager.using(using).filter(pk__in=pks).order_by(*order)
        return [*rows.select_for_update().values_list(*columns)]
    names = ", ".join(f"hit.{column}" for column in columns)
    found = _look_up(model, pks, order_by=f"ORDER BY {', '.join(order)} ")
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM {found} FOR UPDATE")  # noqa: S608 - our own names
        locked: Rows = cursor.fetchall()
    return locked


def delete_by_id(model: type[models.Model], pks: Sequence[int]) -> None:
    """Delete rows that this transaction has locked. Costs a statement."""
    if not pks:
        return
    connection = connections[hits_alias()]
    table = connection.ops.quote_name(model._meta.db_table)
    delete = f"DELETE FROM {table} WHERE {match_rows(pks)}"  # noqa: S608 - our own names
    if connection.vendor == "mysql":
        delete = f"DELETE hit FROM {_look_up(model, pks)}"
    with connection.cursor() as cursor:
        cursor.execute(delete)


def _look_up(model: type[models.Model], pks: Sequence[int], *, order_by: str = "") -> str:
    """
    Return a join, for MariaDB and MySQL, that looks up each row by its id, as ``hit``.

    They would scan a small table, and then also wait for rows that other sessions have locked. The
    LIMIT keeps them from merging the subquery with the join.
    """
    table = connections[hits_alias()].ops.quote_name(model._meta.db_table)
    ids = f"SELECT id FROM {table} WHERE {match_rows(pks)} {order_by}LIMIT {len(pks)}"  # noqa: S608
    return f"({ids}) found STRAIGHT_JOIN {table} hit FORCE INDEX (PRIMARY) ON hit.id = found.id"


class Clock(models.Func):
    """
    The current time of the database, in microseconds since 1970. SQLite's has only milliseconds.

    It is never the time at which the transaction began. It may be the time at which the
    statement began, before it waited for a lock.
    """

    arity = 0
    output_field = models.BigIntegerField()
    as_postgresql = partialmethod(
        models.Func.as_sql, template="(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000000)::bigint"
    )
    as_mysql = partialmethod(
        models.Func.as_sql, template="TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
    )
    as_sqlite = partialmethod(
        models.Func.as_sql,
        template="(CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)",
    )


def read_clock() -> datetime.datetime:
    """Return the current time of the database, as timezone.now() returns ours. Costs a query."""
    using = hits_alias()
    compiler = VisitorSalt.objects.using(using).query.get_compiler(using)
    sql, params = compiler.compile(Clock())
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        (microseconds,) = cursor.fetchone()
    zone = timezone.get_default_timezone()
    now = datetime.datetime.fromtimestamp(microseconds / 1_000_000, zone)
    return now if settings.USE_TZ else now.replace(tzinfo=None)
