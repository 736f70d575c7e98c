"""Sessions of processes that were killed, at the server of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from tests.servers import wait_until

OPEN_TRANSACTIONS = {
    "postgresql": """
        SELECT COUNT(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend' AND state <> 'idle'
    """,
    "mysql": """
        SELECT COUNT(*) FROM information_schema.innodb_trx
        WHERE trx_mysql_thread_id NOT IN (0, CONNECTION_ID())
    """,
}


def wait_for_transactions_of_the_dead() -> None:
    """
    Wait until no other transaction is open: a killed client's COMMIT may still be under way.

    Nobody else may be at work. Do not call it within a transaction: it would see the same again.
    """
    if connection.vendor != "sqlite":
        wait_until(lambda: _count_open_transactions() == 0, "the end of all transactions")


def _count_open_transactions() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            # InnoDB brings its table up to date only if nobody has read it for 0.1 seconds.
            cursor.execute("DO SLEEP(0.2)")
        cursor.execute(OPEN_TRANSACTIONS[connection.vendor])
        (count,) = cursor.fetchone()
        return int(count)


@contextmanager
def repeatable_read() -> Iterator[None]:
    """
    Begin transactions as MariaDB and MySQL do by default, and PostgreSQL if it is set to.

    Django sets READ COMMITTED on MariaDB and MySQL, unless OPTIONS say otherwise.
    """
    level = "TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    scope = "SESSION" if connection.vendor == "mysql" else "SESSION CHARACTERISTICS AS"
    with connection.cursor() as cursor:
        cursor.execute(f"SET {scope} {level}")
    try:
        yield
    finally:
        connection.close()
