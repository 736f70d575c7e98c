"""Work that waits for COMMIT."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextvars import copy_context

from django.db import connections, transaction


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


def open_transactions(databases: Iterable[str]) -> list[str]:
    """Return those of ``databases`` with a transaction whose COMMIT Django will report."""
    opened = []
    for using in {*databases}:
        connection = connections[using]
        if connection.in_atomic_block and connection.commit_on_exit:
            opened.append(using)
    return opened


class DelayedWork:
    """Work that waits for the COMMIT of transactions, which may end in any order."""

    def __init__(self, work: Callable[[], object], databases: Iterable[str]) -> None:
        context = copy_context()
        self._work: Callable[[], object] = lambda: context.run(work)
        self._pending: list[weakref.ref[_CommitCallback]] = []
        for using in databases:
            callback = _CommitCallback(self)
            self._pending.append(weakref.ref(callback))
            transaction.on_commit(callback, using=using, robust=True)

    @property
    def is_cancelled(self) -> bool:
        """
        Whether the work will never run, because a transaction or savepoint was rolled back.

        Django drops the callbacks of a rollback without a report. Nothing else refers to them, so
        the weak reference is empty then.
        """
        return any(callback() is None for callback in self._pending)

    def note_commit(self, done: _CommitCallback) -> None:
        """Note that one of the transactions has committed; run the work after the last one."""
        self._pending = [callback for callback in self._pending if callback() is not done]
        if not self._pending:
            self._work()


class _CommitCallback:
    """The callback that Django calls after one COMMIT. Only Django has a reference to it."""

    def __init__(self, delayed: DelayedWork) -> None:
        self._delayed = delayed
        self.__qualname__ = type(self).__qualname__  # Django logs the name of one that fails.

    def __call__(self) -> None:
        self._delayed.note_commit(self)
