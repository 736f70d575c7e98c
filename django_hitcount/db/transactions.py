"""Our own transactions: tries after a failure, and limits of how long they wait for locks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connections,
    models,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hitcount.db.failures import has_rolled_back, is_conflict
from django_hitcount.db.tables import LastBatch

FIRST_PAUSE_SECONDS = 0.005
"""Pause before the second try; each further one is twice as long, with jitter."""

LONGEST_PAUSE_SECONDS = 0.5
"""Much shorter than a flush keeps retrying, and long enough not to load a busy server."""

DELETE_BATCH_SIZE = 500
"""Rows deleted by one statement: few enough for the 999 parameters of an old SQLite."""

DELETE_PATIENCE_SECONDS = 5.0
"""How long to retry the deletion of a batch that meets locks: the next run can delete it, too."""

RETRYABLE_ERRORS = (OperationalError, InterfaceError)
"""Errors that mean that the database is away or locked."""

DATABASE_ERRORS = (DatabaseError, InterfaceError)
"""All errors of a database. None of them may reach a page."""

_MARIADB_NOWAIT_BELOW_SECONDS = 0.1
"""Shorter limits become 0 on MariaDB. It limits waits for locks in whole seconds. Between this and
a second, max_statement_time is the limit. If it were shorter, it would also end statements that
merely read from disk."""

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
"""The function that runs a statement. Takes SQL, parameters, ``many``, and Django's context."""

T = TypeVar("T")


class LockPatience(NamedTuple):
    """How long to retry while another session holds locks."""

    seconds: float
    tries: int
    """How often to try at least, even if ``seconds`` are over."""


def in_transaction(
    work: Callable[[], T],
    *,
    using: str,
    patience_seconds: float,
    repeatable: bool,
    lock_patience: LockPatience | None = None,
) -> T:
    """
    Run ``work`` in a transaction; retry after a deadlock, a lock timeout, a serialization
    failure or a lost connection.

    When it returns, the transaction is committed.

    Retries for ``patience_seconds``. After a lock or conflict, ``lock_patience`` applies instead.
    If ``work`` is not ``repeatable``, does not retry after the answer to a COMMIT was lost, since
    the transaction may be committed.

    Raises the last error of the database, RuntimeError within another transaction, and
    TransactionManagementError if autocommit is off.
    """
    connection = connections[using]
    require_autocommit(using)
    at_locks = lock_patience or LockPatience(patience_seconds, tries=1)
    began_at, tries, pause_seconds = time.monotonic(), 0, FIRST_PAUSE_SECONDS
    while True:
        is_at_commit = False
        try:
            with transaction.atomic(using=using, durable=True):
                result = work()
                is_at_commit = True
            return result
        except RETRYABLE_ERRORS as exc:
            tries, passed = tries + 1, time.monotonic() - began_at
            is_undone = not is_at_commit or has_rolled_back(exc)
            is_patient = passed < patience_seconds
            if is_conflict(exc):
                is_patient = tries < at_locks.tries or passed < at_locks.seconds
            # Within the transaction of a test case, no retry can succeed.
            if not is_patient or not (repeatable or is_undone) or connection.in_atomic_block:
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


def delete_in_batches(old: models.QuerySet[Any, Any], *, using: str) -> int:
    """
    Delete the rows of ``old`` in its order, 500 per transaction. Returns their number.

    Costs a read, and per 500 rows a read and a transaction of one statement.

    Raises OperationalError if a batch meets locks for longer than 5 seconds.
    """
    deleted = 0
    while pks := [*old.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]]:
        delete = partial(old.order_by().filter(pk__in=pks)._raw_delete, using)
        deleted += in_transaction(
            delete, using=using, patience_seconds=DELETE_PATIENCE_SECONDS, repeatable=True
        )
    return deleted


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
