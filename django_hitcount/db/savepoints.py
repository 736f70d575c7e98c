"""The transactions of a view: keep errors from breaking them, and wait for their COMMIT."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import copy_context
from typing import Any

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from django_hitcount.db.transactions import (
    DATABASE_ERRORS,
    is_in_transaction,
    require_autocommit,
)
from django_hitcount.exceptions import TransactionLost


def protect_transactions() -> AbstractContextManager[object]:
    """
    Protect the transactions that are open in this thread, on all databases, as savepoint() does.

    For code that may query any of them, such as a project's own refusals and identities. Costs some
    3 us per database, and what savepoint() costs.
    """
    stack = ExitStack()
    for connection in connections.all(initialized_only=True):
        stack.enter_context(savepoint(connection.alias))
    return stack


def savepoint(using: str) -> AbstractContextManager[object]:
    """
    Protect the transaction of the view from errors within the block.

    Rolls the block back if it raises, or if it hides an error after which PostgreSQL accepts no
    further queries. If the block runs a query within a transaction, costs two statements,
    SAVEPOINT and RELEASE SAVEPOINT. Otherwise costs nothing.

    Raises TransactionLost if the transaction cannot continue.
    """
    connection = connections[using]
    if is_in_transaction(using) and not connection.needs_rollback:
        return _LazySavepoint(connection)
    return nullcontext()


class _LazySavepoint:
    """
    Makes a savepoint before the first statement of the block.

    It is a class because that is faster than a generator, and a list of totals needs many.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._callbacks = len(connection.run_on_commit)
        self._is_made = False
        self._id: str | None = None

    def __enter__(self) -> None:
        # The first one is called first. Its SAVEPOINT passes by the blocks around it, which make
        # theirs before.
        self._connection.execute_wrappers.insert(0, self)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._connection.execute_wrappers.remove(self)
        if error is None:
            self._release()
        elif not isinstance(error, TransactionLost):
            self._undo(error)

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        if not self._is_made:
            self._is_made = True  # SAVEPOINT itself comes here, too.
            self._id = self._connection.savepoint()
        return execute(*args)

    def _release(self) -> None:
        """Keep the work of the block. Undo it if the transaction accepts no further statements."""
        try:
            self._connection.validate_no_broken_transaction()
            if self._id:
                self._connection.savepoint_commit(self._id)
        except DATABASE_ERRORS as exc:
            self._undo(exc)

    def _undo(self, error: BaseException) -> None:
        """Roll back the block after ``error``; raises TransactionLost if that fails."""
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
            connection.needs_rollback = True  # As atomic() does: the transaction will not commit.
            raise TransactionLost(str(error)) from error


def run_after_commit(work: Callable[[], object], *, databases: Iterable[str]) -> DelayedWork | None:
    """
    Run ``work`` now, or once each of ``databases`` that is in a transaction has committed.

    Returns the work if it waits, or None if it ran. Work that waits runs in a copy of the current
    context, so it stays part of its page. If one of the transactions rolls back, it never runs.

    Does not wait for a transaction that was begun by hand, with autocommit off: Django does not
    report when it ends.
    """
    if opened := open_transactions(databases):
        return DelayedWork(work, opened)
    work()
    return None


def open_transactions(databases: Iterable[str], *, autocommit_in: str | None = None) -> list[str]:
    """
    Return those with a transaction whose COMMIT Django will report. All ``databases`` are distinct.

    Raises TransactionManagementError if autocommit is off in the one that ``autocommit_in`` names.
    """
    opened = []
    for using in databases:
        connection = connections[using]
        if connection.in_atomic_block and connection.commit_on_exit:
            opened.append(using)
        elif using == autocommit_in and not connection.autocommit:  # Also without a connection.
            require_autocommit(using)
    return opened


def write_aliases(objs: Sequence[Model]) -> set[str]:
    """Return the databases in which routers would write ``objs``."""
    # Not type(obj): request.user is a lazy object, which only looks like its model.
    return {router.db_for_write(obj._meta.model, instance=obj) for obj in objs}


class DelayedWork:
    """Work that waits for the COMMIT of transactions, which may end in any order."""

    def __init__(self, work: Callable[[], object], databases: Iterable[str]) -> None:
        self.work = work
        self._context = copy_context()
        self._pending = [self._wait_for(using) for using in databases]

    def _wait_for(self, using: str) -> weakref.ref[Callable[[], None]]:
        """Let Django report the COMMIT. Only Django has a reference to the function it calls."""

        def note_commit() -> None:
            if not self._pending:
                return  # Django's captureOnCommitCallbacks() in another one runs it twice.
            self._pending = [other for other in self._pending if other is not pending]
            if not self._pending:
                self._context.run(self.work)

        vars(note_commit)["__wrapped__"] = self  # Shows assert_hits() what waits.
        pending: weakref.ref[Callable[[], None]] = weakref.ref(note_commit)
        transaction.on_commit(note_commit, using=using, robust=True)
        return pending

    @property
    def is_done(self) -> bool:
        """Whether the work has begun."""
        return not self._pending

    @property
    def is_cancelled(self) -> bool:
        """
        Whether the work will never run, because a transaction or savepoint was rolled back.

        Django drops the functions of a rollback without a report: the weak reference is empty then.
        """
        return any(pending() is None for pending in self._pending)
