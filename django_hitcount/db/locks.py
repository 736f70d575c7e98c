"""Locks of other sessions: how long a statement waits for them, and which errors speak of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
"""How Django runs a statement: SQL, parameters, whether they are many, and the context."""

_ROLLED_BACK = frozenset(
    {
        "55P03",  # PostgreSQL: lock timeout
        "40P01",  # deadlock
        "40001",  # serialization failure
        1205,  # MariaDB, MySQL: lock wait timeout, also of tables
        1213,  # deadlock
        1020,  # another session has changed a row since this transaction looked
    }
)
"""Codes of errors after which nothing is committed, also if COMMIT is answered with one."""

_STATEMENT_TIMEOUT = 1969
"""MariaDB's max_statement_time is over: what limit_waits() sets for less than a second."""

_NOWAIT = 3572
"""What MySQL answers if a row is locked for which it is not to wait."""

_MARIADB_NOWAIT_BELOW_SECONDS = 0.1
"""MariaDB measures waits for locks in whole seconds, of which 0 is one. Waits shorter than this
are not worth max_statement_time, which would also cut short a statement that reads from disk."""


def is_conflict(error: BaseException) -> bool:
    """Whether a session was in the way, and not the server: another try may succeed at once."""
    return _code(error) in {*_ROLLED_BACK, _STATEMENT_TIMEOUT, _NOWAIT}


def has_rolled_back(error: BaseException) -> bool:
    """Whether it is certain that the transaction counted nothing, even if COMMIT had been sent."""
    return _code(error) in _ROLLED_BACK


def _code(error: BaseException) -> str | int | None:
    """What psycopg 3 calls the sqlstate, psycopg2 the pgcode, and MySQL's driver puts first."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is None and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return code


@contextmanager
def limit_waits(using: str, *, seconds: float, is_at_begin: bool = False) -> Iterator[None]:
    """
    Let statements within wait for locks for so long at most; for a transaction of our own.

    An error that is_conflict() tells follows. PostgreSQL applies the limit to the rest of the
    transaction. MySQL has none for a single statement (see slot_locks.check_locks()), and SQLite
    one lock for the whole file, for which each connection waits as long as its settings say.

    If the transaction ``is_at_begin``, it is READ COMMITTED on PostgreSQL, whatever is set:
    nothing of ours needs more, and a serializable one would be undone for others' sake.

    Costs no round trip.
    """
    connection = connections[using]
    wrapper = _wrapper(connection, seconds, is_at_begin)
    # Within a savepoint the transaction is that of a test case, and not ours to limit.
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
    """Whether the server is MySQL itself, and not MariaDB."""
    return connection.vendor == "mysql" and not connection.mysql_is_mariadb  # type: ignore[attr-defined]


class _FirstCommands:
    """
    Sends PostgreSQL some commands together with the first statement.

    A limit within the statement (``set_config()``) would come too late for the table's lock.
    """

    def __init__(self, connection: BaseDatabaseWrapper, commands: Sequence[str]) -> None:
        self._commands = commands
        # Parameters that the server binds go with a single statement only.
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
    """Psycopg 3 stands before the results of all statements, psycopg2 at the last one."""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if is_psycopg3:
        for _ in range(count):
            context["cursor"].nextset()


class _SetStatement:
    """Puts MariaDB's limits before each statement; they hold for that one alone."""

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
