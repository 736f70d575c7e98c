"""Tables that another session has locked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.db import connection

LOCK_TIMEOUT_SECONDS = 1
"""How long the session of the test waits for a lock; docs/operations.rst advises it."""

SHORT_WAITS = {
    "sqlite": f"PRAGMA busy_timeout = {LOCK_TIMEOUT_SECONDS * 1000}",
    "mysql": f"SET SESSION lock_wait_timeout = {LOCK_TIMEOUT_SECONDS}, "
    f"innodb_lock_wait_timeout = {LOCK_TIMEOUT_SECONDS}",
    "postgresql": f"SET lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'",
}


@contextmanager
def locked_tables() -> Iterator[None]:
    """Lock all tables of django_hitcount, against reading, too."""
    names = [model._meta.db_table for model in apps.get_app_config("django_hitcount").get_models()]
    lock = {
        "sqlite": ["BEGIN EXCLUSIVE"],
        "mysql": ["LOCK TABLES " + ", ".join(f"{name} WRITE" for name in names)],
        "postgresql": ["BEGIN", f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE"],
    }[connection.vendor]
    unlock = "UNLOCK TABLES" if connection.vendor == "mysql" else "ROLLBACK"
    with connection.cursor() as cursor:
        cursor.execute(SHORT_WAITS[connection.vendor])
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            for statement in lock:
                cursor.execute(statement)
            yield
            cursor.execute(unlock)
    finally:
        other.close()
        connection.close()
