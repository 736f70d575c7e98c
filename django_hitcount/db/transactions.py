"""
Our own transactions: tries after a failure, and limits of how long they wait for locks.

What the errors of a database mean: a lock, a server that is away, or a wrong statement.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
    models,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hitcount.db.tables import LastBatch
from django_hitcount.exceptions import BufferUnavailable

FIRST_PAUSE_SECONDS = 0.005
"""Pause before the second try; each further one is twice as long, with jitter."""

LONGEST_PAUSE_SECONDS = 0.5
"""Much shorter than a flush keeps retrying, and long enough not to load a busy server."""

RETRYABLE_ERRORS = (OperationalError, InterfaceError)
"""Errors that mean that the database is away or locked."""

DATABASE_ERRORS = (DatabaseError, InterfaceError)
"""All errors of a database. None of them may reach a page."""

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

_WAITED = frozenset({1969, 3572})
"""MariaDB's max_statement_time is over, which limit_waits() sets for waits of less than a second,
and MySQL's error when a statement with NOWAIT finds a locked row."""

_POSTGRESQL_AWAY = ("08", "25006", "28", "3D", "53", "57", "58", "XX")
"""First characters of SQLSTATE: no connection, read-only, access denied, no such database, out of
resources, stopping, system error, internal error."""

_MYSQL_CLIENT_ERRORS = range(2000, 3000)
"""Errors of the client library: it cannot connect, or has lost the connection."""

_MYSQL_AWAY = frozenset(
    {
        *(1021, 1037, 1038, 1041, 1114),  # no memory, disk or table space left
        *(1040, 1203, 1226),  # too many connections
        *(1042, 1043, 1044, 1045, 1049, 1129, 1130, 1698),  # access denied
        *(1047, 1053, 1077, 1078, 1079, 1080, 1927, 3032, 4031),  # starting or stopping
        *(1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184),  # the network
        *(1290, 1792, 1836),  # read-only
        *(1969, 3024),  # statement timeouts
    }
)
"""Errors of MariaDB and MySQL. Most other codes of an OperationalError mean a wrong statement."""

_MARIADB_NOWAIT_BELOW_SECONDS = 0.1
"""Shorter limits become 0 on MariaDB. It limits waits for locks in whole seconds. Between this and
a second, max_statement_time is the limit. If it were shorter, it would also end statements that
merely read from disk."""

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
"""Runs a statement. Takes SQL, parameters, ``many``, and Django's context."""

T = TypeVar("T")


def in_transaction(
    work: Callable[[], T],
    *,
    using: str,
    patience_seconds: float,
    repeatable: bool,
    seconds_at_locks: float | None = None,
    tries_at_locks: int = 1,
) -> T:
    """
    Run ``work`` in a transaction; retry after a deadlock, a lock timeout, a serialization
    failure or a lost connection. When it returns, the transaction is committed.

    Retries for ``patience_seconds``; after a lock or conflict for ``seconds_at_locks`` instead, and
    tries at least ``tries_at_locks`` times. If ``work`` is not ``repeatable``, does not retry after
    the answer to a COMMIT was lost, since the transaction may be committed.

    Raises the last error of the database or of a function that ``work`` passed to on_commit(),
    RuntimeError within another transaction, TransactionManagementError if autocommit is off.
    """
    connection = connections[using]
    require_autocommit(using)
    began_at, tries, pause_seconds = time.monotonic(), 0, FIRST_PAUSE_SECONDS
    while True:
        is_at_commit, committed = False, list[bool]()
        try:
            with transaction.atomic(using=using, durable=True):
                transaction.on_commit(partial(committed.append, True), using=using)
                result = work()
                is_at_commit = True
            return result
        except RETRYABLE_ERRORS as exc:
            tries, passed = tries + 1, time.monotonic() - began_at
            may_repeat = repeatable or not is_at_commit or _code(exc) in _ROLLED_BACK
            if committed:  # Then a function has failed that was passed to on_commit().
                may_repeat = False
            is_patient = passed < patience_seconds
            if is_conflict(exc):
                seconds = patience_seconds if seconds_at_locks is None else seconds_at_locks
                is_patient = tries < tries_at_locks or passed < seconds
            # Within the transaction of a test case, no retry can succeed.
            if not is_patient or not may_repeat or connection.in_atomic_block:
                raise
            if connection.connection and not connection.is_usable():
                connection.close()
        time.sleep(pause_seconds * random.uniform(0.5, 1.5))
        pause_seconds = min(pause_seconds * 2, LONGEST_PAUSE_SECONDS)


def is_in_transaction(using: str) -> bool:
    """
    Return whether a transaction is open, begun by atomic() or by hand.

    It may see the tables as they were when it began, or its own changes, which others do not see.
    What it reads is then wrong for others.
    """
    connection = connections[using]
    return connection.connection is not None and not connection.autocommit


def require_autocommit(using: str) -> None:
    """
    Raise TransactionManagementError if autocommit is off in ``using``.

    If it is off, Django does not report when a transaction ends, not even within atomic().
    """
    connection = connections[using]
    if connection.in_atomic_block:
        is_on = connection.commit_on_exit
    elif connection.connection:
        is_on = connection.autocommit
    else:
        is_on = connection.settings_dict["AUTOCOMMIT"]
    if not is_on:
        raise transaction.TransactionManagementError(
            f"Autocommit is off in database {using!r}, so the hits would never be committed. "
            "Turn autocommit on, or route the app django_hitcount to an alias in DATABASES "
            "that has it on."
        )


def take_write_lock(using: str, model: type[models.Model] = LastBatch) -> None:
    """
    Take the write lock of SQLite, before the transaction reads anything.

    On SQLite, a transaction that has read fails at once when it writes, if another one has written
    since. Does nothing on other databases, which lock rows. ``model`` has a table in the database.
    """
    connection = connections[using]
    if not connection.features.has_select_for_update:
        meta = model._meta
        table, key = map(connection.ops.quote_name, (meta.db_table, str(meta.pk.column)))
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET {key} = {key} WHERE 1 = 0")  # noqa: S608


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
    wrapper: Callable[..., Any] | None = None
    if connection.vendor == "postgresql":
        commands = [f"SET LOCAL lock_timeout = {max(1, round(seconds * 1000))}"]
        if is_at_begin:
            commands.insert(0, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        wrapper = _FirstCommands(connection, commands)
    elif connection.vendor == "mysql" and not is_mysql(connection):
        wrapper = partial(_limit_statement, seconds)
    # A transaction with savepoints belongs to a test case. It keeps its own limits.
    if wrapper is None or connection.savepoint_ids:
        yield
        return
    with connection.execute_wrapper(wrapper):
        yield


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
        from django.db.backends.postgresql.psycopg_any import is_psycopg3

        if is_psycopg3:  # It keeps the results of all commands, and psycopg2 only the last.
            for _ in commands:
                context["cursor"].nextset()
        return result


def _limit_statement(
    seconds: float, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """
    Put MariaDB's limits before a statement. They apply to that statement only.

    A statement that skips locked rows has the limit for tables alone: with 0 for rows, MariaDB
    fails with error 1180 at a locked one.
    """
    limits = [f"innodb_lock_wait_timeout={int(seconds)}", f"lock_wait_timeout={int(seconds)}"]
    if _MARIADB_NOWAIT_BELOW_SECONDS <= seconds < 1:
        limits = [f"max_statement_time={seconds:.3f}"]
    if sql.startswith(("INSERT", "SELECT", "UPDATE", "DELETE")):
        limits = limits[-1:] if sql.endswith("SKIP LOCKED") else limits
        sql = f"SET STATEMENT {', '.join(limits)} FOR {sql}"
    return execute(sql, params, many, context)


def is_conflict(error: BaseException) -> bool:
    """Return whether a lock or change of another session caused the error. A retry may succeed."""
    return _code(error) in _ROLLED_BACK | _WAITED


def _code(error: BaseException) -> str | int | None:
    """Return psycopg 3's sqlstate, psycopg2's pgcode, or mysqlclient's first argument."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is None and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return code


def is_server_away(error: BaseException) -> bool:
    """
    Return whether ``error`` means that the server is away, slow or read-only.

    Returns False for a wrong statement, such as one with a missing table or a value that does not
    fit, which a client may send, or after an earlier error in the transaction. Returns True for
    errors without a code.
    """
    # psycopg reports that a database is read-only as an internal error.
    if not isinstance(error, (*RETRYABLE_ERRORS, InternalError)):
        return isinstance(error, BufferUnavailable)
    code = _code(error)
    if isinstance(code, str):
        return code.startswith(_POSTGRESQL_AWAY)
    if sqlite_code := getattr(error.__cause__, "sqlite_errorcode", None):
        return bool(sqlite_code & 0xFF != 1)  # SQLITE_ERROR; higher bits are details.
    return not code or code in _MYSQL_CLIENT_ERRORS or code in _MYSQL_AWAY
