"""Locks of other sessions: how long a statement waits for them, and which errors report them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
"""How Django runs a statement: SQL, parameters, whether for executemany, and the context."""

_ROLLED_BACK = frozenset(
    {
        "55P03",  # PostgreSQL: lock timeout
        "40P01",  # deadlock
        "40001",  # serialization failure
        1205,  # MariaDB, MySQL: lock wait timeout, also of tables
        1213,  # deadlock
        1020,  # another session has changed a row since this transaction read it
    }
)
"""Codes of errors after which nothing is committed, also when COMMIT returns one of them."""

_STATEMENT_TIMEOUT = 1969
"""MariaDB's max_statement_time is over. limit_waits() sets that for waits below a second."""

_NOWAIT = 3572
"""MySQL's code for a locked row in a statement with NOWAIT."""

_MARIADB_NOWAIT_BELOW_SECONDS = 0.1
"""MariaDB measures waits for locks in whole seconds, from 0 on. Waits shorter than this become 0:
max_statement_time would also end a statement that only reads from disk."""


def is_conflict(error: BaseException) -> bool:
    """Whether another session caused the error, so that a retry may succeed at once."""
    return _code(error) in {*_ROLLED_BACK, _STATEMENT_TIMEOUT, _NOWAIT}


def has_rolled_back(error: BaseException) -> bool:
    """Whether the transaction has certainly committed nothing, even if COMMIT was sent."""
    return _code(error) in _ROLLED_BACK


def _code(error: BaseException) -> str | int | None:
    """The code: psycopg 3's sqlstate, psycopg2's pgcode, or mysqlclient's first argument."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is None and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return code


@contextmanager
def limit_waits(using: str, *, seconds: float, is_at_begin: bool = False) -> Iterator[None]:
    """
    Limit how long statements within wait for locks, in a transaction of our own.

    A statement that waits longer raises an error for which is_conflict() is true. On PostgreSQL
    the limit holds for the rest of the transaction. MySQL has no limit for a single statement
    (see slot_locks.check_locks()). SQLite has one lock for the whole file, and each connection
    waits for it as long as its settings say.

    If the transaction ``is_at_begin``, it becomes READ COMMITTED on PostgreSQL, whatever the
    settings say: our transactions need no more, and a serializable one would be rolled back
    because of others.

    Costs no round trip.
    """
    connection = connections[using]
    wrapper = _wrapper(connection, seconds, is_at_begin)
    # With savepoints it is the transaction of a test case, which is not ours to limit.
    if wrapper is None or connection.savepoint_ids:
        yield
        return
    with connection.execute_wrapper(wrapper):
        yield


def _wrapper(
    connection: BaseDatabaseWrapper, seconds: float, is_at_begin: bool
) -> Callable[..., Any] | None:
    if connection.vendor == "postgresql":
        commands = [f"SET LOCAL lock_timeout = {max(1, round(seconds * 1000))}"]
        if is_at_begin:
            commands.insert(0, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return _FirstCommands(connection, commands)
    if connection.vendor == "mysql" and not is_mysql(connection):
        return _SetStatement(seconds)
    return None


def is_mysql(connection: BaseDatabaseWrapper) -> bool:
    """Whether the server is MySQL, not MariaDB."""
    return connection.vendor == "mysql" and not connection.mysql_is_mariadb  # type: ignore[attr-defined]


class _FirstCommands:
    """
    Sends PostgreSQL some commands together with the first statement.

    A limit within the statement (``set_config()``) would come too late for the lock of the table.
    """

    def __init__(self, connection: BaseDatabaseWrapper, commands: Sequence[str]) -> None:
        self._commands = commands
        # The server binds parameters of a single statement only.
        self._are_apart = connection.features.uses_server_side_binding  # type: ignore[attr-defined]

    def __call__(
        self, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        commands, self._commands = self._commands, ()
        if self._are_apart or many:
            for command in commands:
                execute(command, None, False, context)
            return execute(sql, params, many, context)
        result = execute("; ".join([*commands, sql]), params, many, context)
        _skip_results(len(commands), context)
        return result


def _skip_results(count: int, context: dict[str, Any]) -> None:
    """Skip the results of the commands. Psycopg 3 has all of them, psycopg2 only the last one."""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if is_psycopg3:
        for _ in range(count):
            context["cursor"].nextset()


class _SetStatement:
    """Puts MariaDB's limits before each statement; they hold for that statement only."""

    def __init__(self, seconds: float) -> None:
        self._limits = f"SET STATEMENT {_mariadb_limits(seconds)} FOR "

    def __call__(
        self, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if sql.startswith(("INSERT", "SELECT", "UPDATE", "DELETE")):
            sql = self._limits + sql
        return execute(sql, params, many, context)


def _mariadb_limits(seconds: float) -> str:
    if _MARIADB_NOWAIT_BELOW_SECONDS <= seconds < 1:
        return f"max_statement_time={seconds:.3f}"
    return f"innodb_lock_wait_timeout={int(seconds)}, lock_wait_timeout={int(seconds)}"
