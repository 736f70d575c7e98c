"""
Statements, and how to run those that Django has no function for.

Long results are spooled: they wait in a temporary file. A cursor that stays open until a slow
reader has taken them all would keep a connection of MySQL and MariaDB from reading anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from tempfile import TemporaryFile
from typing import Any

from django.db import connections, models

from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint

Sql = tuple[str, list[Any]]
"""A statement, or a part of one, and its parameters."""

Rows = models.QuerySet[Any, Any]

ROWS_AT_A_TIME = 1000


def read_rows(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a SELECT in the database of the counts. A transaction around it survives an error."""
    using = hits_alias()
    with savepoint(using), connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def spool_rows(sql: str, params: Sequence[Any]) -> Iterator[list[list[Any]]]:
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
        return _open_unbuffered(connection)
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return connection.cursor()
    return connection.chunked_cursor()


def _open_unbuffered(connection: Any) -> Any:
    """Do what Django has no function for: its cursors of MySQL and MariaDB hold all rows."""
    # It is installed only with MySQL and MariaDB, and has no types.
    from MySQLdb.cursors import SSCursor  # type: ignore[import-untyped]

    connection.ensure_connection()
    driver = connection.connection
    usual, driver.cursorclass = driver.cursorclass, SSCursor
    try:
        return connection.cursor()
    finally:
        driver.cursorclass = usual


def read_together(*selects: Rows) -> list[list[tuple[Any, ...]]]:
    """
    Read querysets with values_list(), and return the rows of each. Costs a query.

    They become one UNION ALL. Each column of each queryset is a column of its own there, since
    MySQL and MariaDB do not unite texts of different collations.
    """
    nulls = [_nulls(rows, number) for number, rows in enumerate(selects)]
    first, *others = (_widen(rows, number, nulls) for number, rows in enumerate(selects))
    found: list[list[tuple[Any, ...]]] = [[] for _ in selects]
    for number, *row in first.union(*others, all=True):
        start = sum(map(len, nulls[:number]))
        found[number].append(tuple(row[start : start + len(nulls[number])]))
    return found


class _Null(models.Value):
    """NULL in a column of a type. PostgreSQL takes it for a text if one says no more."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return f"NULL::{self.output_field.cast_db_type(connection)}", []


def _names(rows: Rows) -> list[str]:
    return [*(rows.query.selected or ())]


def _nulls(rows: Rows, number: int) -> dict[str, _Null]:
    """Return what is in the columns of a queryset in the rows of the others."""
    query = rows.query.clone()
    return {
        f"null_{number}_{name}": _Null(None, output_field=query.resolve_ref(name).output_field)
        for name in _names(rows)
    }


def _widen(rows: Rows, number: int, nulls: Sequence[Mapping[str, _Null]]) -> Rows:
    """Add the number of a queryset before its columns, and NULL in those of the others."""
    names = [[*columns] for columns in nulls]
    names[number] = _names(rows)
    added: dict[str, Any] = {"number_of_select": models.Value(number)}
    for other, columns in enumerate(nulls):
        if other != number:
            added |= columns
    wide: Rows = rows.annotate(**added)
    return wide.values_list("number_of_select", *chain.from_iterable(names))
