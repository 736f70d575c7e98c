"""Locks of other sessions: how long a statement waits for them, and which errors report them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
"""The function that runs a statement. Takes SQL, parameters, ``many``, and Django's context."""

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
"""MariaDB's max_statement_time is over. limit_waits() sets it for waits of less than a second."""

_NOWAIT = 3572
"""MySQL's error when a statement with NOWAIT finds a locked row."""

_MARIADB_NOWAIT_BELOW_SECONDS = 0.1
"""Shorter limits become 0 on MariaDB. It limits waits for locks in whole seconds. Between this and
a second, max_statement_time is the limit. If it were shorter, it would also end statements that
merely read from disk."""


def is_conflict(error: BaseException) -> bool:
    """Return whether a lock or change of another session caused the error. A retry may succeed."""
    return _code(error) in {*_ROLLED_BACK, _STATEMENT_TIMEOUT, _NOWAIT}


def has_rolled_back(error: BaseException) -> bool:
    """Return whether the transaction has certainly not committed, even if COMMIT was sent."""
    return _code(error) in _ROLLED_BACK


def _code(error: BaseException) -> str | int | None:
    """Return psycopg 3's sqlstate, psycopg2's pgcode, or mysqlclient's first argument."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is None and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return code


@contextmanager
def limit_waits(using: str, *, seconds: float, is_at_begin: bool = False) -> Iterator[None]:
    """
    Limit how long the statements of the block wait for locks, in a transaction of our own.

    A statement that waits longer raises an error for which is_conflict() is true. On PostgreSQL
    the limit holds for the rest of the transaction. MySQL has no limit for a single statement
    (see slots.check_locks()). SQLite has one lock for the whole file, and each connection
    waits for it as long as its settings say.

    If the transaction ``is_at_begin`` (it has run no statement yet), it becomes READ COMMITTED on
    PostgreSQL, even if the settings ask for another level. Our transactions need no more, and the
    server would roll back serializable ones because of others.

    Costs no round trip.
    """
    connection = connections[using]
    wrapper = _wrapper(connection, seconds, is_at_begin)
    # A transaction with savepoints belongs to a test case. It keeps its own limits.
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
    """Return whether the server is MySQL, not MariaDB."""
    return connection.vendor == "mysql" and not connection.mysql_is_mariadb  # type: ignore[attr-defined]


class _FirstCommands:
    """
    Sends PostgreSQL some commands together with the first statement.

    Setting the limit within the statement (``set_config()``) would be too late for table locks.
    """

    def __init__(self, connection: BaseDatabaseWrapper, commands: Sequence[str]) -> None:
        self._commands = commands
        # With server-side binding, only a single statement may have parameters.
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
    """Skip the results of the commands. Psycopg 3 keeps all results, psycopg2 only the last."""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if is_psycopg3:
        for _ in range(count):
            context["cursor"].nextset()


class _SetStatement:
    """
    Puts MariaDB's limits before each statement. They apply to that statement only.

    A statement that skips locked rows has the limit for tables alone: with a limit of 0 for rows,
    MariaDB fails with error 1180 when it finds a locked one.
    """

    def __init__(self, seconds: float) -> None:
        self._limits = _mariadb_limits(seconds)
        self._table_limit = self._limits.rpartition(", ")[-1]

    def __call__(
        self, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if sql.startswith(("INSERT", "SELECT", "UPDATE", "DELETE")):
            limits = self._table_limit if sql.endswith("SKIP LOCKED") else self._limits
            sql = f"SET STATEMENT {limits} FOR {sql}"
        return execute(sql, params, many, context)


def _mariadb_limits(seconds: float) -> str:
    if _MARIADB_NOWAIT_BELOW_SECONDS <= seconds < 1:
        return f"max_statement_time={seconds:.3f}"
    return f"innodb_lock_wait_timeout={int(seconds)}, lock_wait_timeout={int(seconds)}"
