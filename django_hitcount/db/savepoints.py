"""Leave the transactions of a view as they were found, whatever fails within them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import TransactionLost


class OpenTransactions:
    """
    The transactions that this thread has open now, on any database.

    For code that may ask any of them, such as refusals and identities. To make it takes
    3 us, so a call makes it once.
    """

    def __init__(self) -> None:
        self._connections = [
            c for c in connections.all(initialized_only=True) if _is_in_transaction(c)
        ]

    def protect(self) -> AbstractContextManager[object]:
        """As savepoint(), for all of them."""
        return self._protect() if self._connections else nullcontext()

    @contextmanager
    def _protect(self) -> Iterator[None]:
        with ExitStack() as stack:
            for connection in self._connections:
                stack.enter_context(_LazySavepoint(connection))
            yield


def savepoint(using: str) -> AbstractContextManager[object]:
    """
    Keep what fails within from spoiling the transaction of the view it is part of.

    What was done within is undone if it raises, or hides an error that made PostgreSQL refuse
    all further queries. Costs two statements within a transaction, SAVEPOINT and RELEASE
    SAVEPOINT, if the database is asked anything, and nothing otherwise.

    Raises TransactionLost if there is no way back.
    """
    connection = connections[using]
    return _LazySavepoint(connection) if _is_in_transaction(connection) else nullcontext()


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Whether there is a transaction that can be spoiled, begun by atomic() or by hand."""
    is_connected = connection.connection is not None
    return is_connected and not connection.autocommit and not connection.needs_rollback


class _LazySavepoint:
    """
    A savepoint before the first statement; wraps the execution of all of them.

    A class and no generator: reading totals of a list makes one for each object.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._callbacks = len(connection.run_on_commit)
        self._is_made = False
        self._id: str | None = None

    def __enter__(self) -> None:
        self._connection.execute_wrappers.append(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.execute_wrappers.remove(self)
        if error is None:
            self._release()
        elif not isinstance(error, TransactionLost):
            self._undo(error)

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        if not self._is_made:
            self._is_made = True  # The statement that makes it comes here, too.
            self._id = self._connection.savepoint()
        return execute(*args)

    def _release(self) -> None:
        """Keep what was done since, unless the transaction takes no further statement."""
        try:
            self._connection.validate_no_broken_transaction()
            if self._id:
                self._connection.savepoint_commit(self._id)
        except DATABASE_ERRORS as exc:
            self._undo(exc)

    def _undo(self, error: BaseException) -> None:
        """Go back to it after ``error``; raises TransactionLost if there is no way back."""
        connection = self._connection
        if connection.closed_in_transaction:
            raise TransactionLost(str(error)) from error
        del connection.run_on_commit[self._callbacks :]
        connection.needs_rollback = False
        try:
            if self._id:
                connection.savepoint_rollback(self._id)
                connection.savepoint_commit(self._id)
        except DATABASE_ERRORS:
            connection.needs_rollback = True  # As atomic() does: nothing of it is committed.
            raise TransactionLost(str(error)) from error
