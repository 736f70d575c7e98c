"""Empty the tables faster than Django does. Each test with transactions waits for this."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

KEPT_TABLES = ("django_content_type", "auth_permission", "django_migrations")
"""Django fills these after a migration. Filling them again takes most of the time of a flush."""

_kept: dict[str, list[Any]] = {}
"""By database: the rows of KEPT_TABLES after the last flush of Django's own."""


class Command(flush.Command):
    """Delete the rows that a test has made; if it changed KEPT_TABLES, run Django's flush."""

    def handle(self, **options: Any) -> None:
        """Run the command."""
        alias = options["database"]
        connection = connections[alias]
        if _read_kept_rows(connection) == _kept.get(alias):
            _delete_rows(connection)
        else:
            super().handle(**options)
            _kept[alias] = _read_kept_rows(connection)


def _read_kept_rows(connection: BaseDatabaseWrapper) -> list[Any]:
    rows: list[Any] = []
    with connection.cursor() as cursor:
        for table in KEPT_TABLES:
            cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
            rows.append(cursor.fetchall())
    return rows


def _delete_rows(connection: BaseDatabaseWrapper) -> None:
    quote = connection.ops.quote_name
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    names = [
        f"SELECT '{table}' FROM {quote(table)} LIMIT 1" for table in {*tables} - {*KEPT_TABLES}
    ]
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT * FROM ({name}) one" for name in names))
        filled = [quote(table) for (table,) in cursor.fetchall()]
        if filled and connection.vendor == "postgresql":
            # Deleted rows would stay in the files, and the planner would count their pages.
            cursor.execute(f"TRUNCATE {', '.join(filled)} CASCADE")
            return
        with connection.constraint_checks_disabled():
            for table in filled:
                cursor.execute(f"DELETE FROM {table}")
