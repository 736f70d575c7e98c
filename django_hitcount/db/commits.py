"""Work that waits for COMMIT."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable

from django.db import connections, transaction


def when_committed(work: Callable[[], object], *, databases: Iterable[str]) -> Waiting | None:
    """
    Run ``work`` now, or once each of ``databases`` that is in a transaction has committed.

    Returns what waits, or None if it ran now. If one of the transactions rolls back, it never
    runs. A transaction begun by hand, with autocommit off, is not waited for: Django does not
    tell when it ends.
    """
    opened = [using for using in {*databases} if _tells_of_commit(using)]
    if opened:
        return Waiting(work, opened)
    work()
    return None


def _tells_of_commit(using: str) -> bool:
    connection = connections[using]
    return connection.in_atomic_block and connection.commit_on_exit


class Waiting:
    """Work that waits for the COMMIT of transactions, which may end in any order."""

    def __init__(self, work: Callable[[], object], databases: Iterable[str]) -> None:
        self._work = work
        self._left: list[weakref.ref[_Commit]] = []
        for using in databases:
            commit = _Commit(self)
            self._left.append(weakref.ref(commit))
            transaction.on_commit(commit, using=using, robust=True)

    @property
    def is_dropped(self) -> bool:
        """
        Whether a rollback, also of a savepoint, has seen to it that the work never runs.

        Django then drops what was to be called after COMMIT, and tells nobody.
        """
        return any(commit() is None for commit in self._left)

    def end(self, ended: _Commit) -> None:
        """Take note that one of the transactions has committed."""
        self._left = [commit for commit in self._left if commit() is not ended]
        if not self._left:
            self._work()


class _Commit:
    """What Django calls after the COMMIT of one transaction; it alone keeps it alive."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.__qualname__ = type(self).__qualname__  # Django logs the name of one that fails.

    def __call__(self) -> None:
        self._waiting.end(self)
