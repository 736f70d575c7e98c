"""
Read more rows than fit into memory.

They wait in a temporary file. A cursor that stays open until a slow reader has taken them all would
keep a connection of MySQL and MariaDB from reading anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any

from django.db import connections

from django_hitcount.db.routing import hits_alias

ROWS_AT_A_TIME = 1000


def spool_rows(sql: str, params: Sequence[Any]) -> Iterator[list[list[Any]]]:
    """Run a SELECT of texts and whole numbers, and yield its rows, a thousand at a time."""
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
