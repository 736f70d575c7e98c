"""Transactions that are tried again."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
    models,
    transaction,
)

from django_hitcount.db import locks
from django_hitcount.db.tables import FlushedBatch

FIRST_PAUSE_SECONDS = 0.005
"""Pause before the second try; each further one is twice as long, with jitter."""

LONGEST_PAUSE_SECONDS = 0.5

DELETE_BATCH_SIZE = 500
"""Rows deleted by one statement: few enough for the 999 parameters of an old SQLite."""

DELETE_PATIENCE_SECONDS = 5.0
"""How long a batch of deleted rows is tried again for when it meets locks: nobody waits for it."""

RETRYABLE_ERRORS = (OperationalError, InterfaceError)
"""Errors that say: the database is away or locked."""

DATABASE_AWAY = (*RETRYABLE_ERRORS, InternalError)
"""The same, or it is read-only, which psycopg calls an internal error."""

DATABASE_ERRORS = (DatabaseError, InterfaceError)
"""All that a database may answer. None of it is to reach a page."""

NO_BATCH = uuid.UUID(int=0)

T = TypeVar("T")


class LockPatience(NamedTuple):
    """How long to try again while another session is in the way."""

    seconds: float
    tries: int
    """How often in any case."""


def in_transaction(
    work: Callable[[], T],
    *,
    using: str,
    patience_seconds: float,
    repeatable: bool,
    lock_patience: LockPatience | None = None,
) -> T:
    """
    Run ``work`` in a transaction; again after a deadlock, a lock timeout, a serialization
    failure or a lost connection.

    The COMMIT has happened on return: within another transaction it raises RuntimeError, and
    with autocommit switched off TransactionManagementError.

    Gives up once ``patience_seconds`` have passed, or those ``lock_patience`` if another session
    is in the way. If ``work`` is not ``repeatable``, a COMMIT whose answer was lost is not
    tried again either, since it may have happened.

    Raises what the database raised last.
    """
    connection = connections[using]
    require_autocommit(using)
    patience = _Patience(patience_seconds, lock_patience or LockPatience(patience_seconds, tries=1))
    while True:
        attempt = _Attempt(work)
        try:
            with transaction.atomic(using=using, durable=True):
                return attempt()
        except RETRYABLE_ERRORS as exc:
            if not patience.allows_retry(exc) or not (repeatable or attempt.is_undone(exc)):
                raise
            if connection.in_atomic_block:
                raise  # A test case's own transaction: nothing within it can be tried again.
            if connection.connection and not connection.is_usable():
                connection.close()
        patience.pause()


def require_autocommit(using: str) -> None:
    """
    Raise TransactionManagementError if nobody tells when a transaction of ``using`` ends.

    With autocommit off, Django does not: not within atomic() either.
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
            f"Autocommit is off in database {using!r}, so that this would never be committed. "
            "Call it with autocommit on, or route the app django_hitcount to an alias with "
            "autocommit in DATABASES."
        )


def delete_in_batches(old: models.QuerySet[Any, Any], *, using: str) -> int:
    """
    Delete the rows of ``old`` in its order, 500 in a transaction; returns how many.

    Costs a read, and a read and a statement in a transaction per 500 rows.

    Raises OperationalError if a batch meets locks for longer than 5 seconds.
    """
    deleted = 0
    while pks := [*old.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]]:
        delete = partial(old.order_by().filter(pk__in=pks)._raw_delete, using)
        deleted += in_transaction(
            delete, using=using, patience_seconds=DELETE_PATIENCE_SECONDS, repeatable=True
        )
    return deleted


def take_write_lock(using: str) -> None:
    """
    Make a transaction of SQLite the one that writes, before it reads anything.

    One that reads first is refused the lock at once if somebody else writes meanwhile. Other
    databases lock rows; there it does nothing.
    """
    if not connections[using].features.has_select_for_update:
        FlushedBatch.objects.using(using).filter(pk=NO_BATCH).update(flushed_at=None)


class _Attempt(Generic[T]):
    """One run of ``work``."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._is_at_commit = False

    def __call__(self) -> T:
        result = self._work()
        self._is_at_commit = True
        return result

    def is_undone(self, error: BaseException) -> bool:
        """Whether it is certain that ``error`` left nothing committed."""
        return not self._is_at_commit or locks.has_rolled_back(error)


class _Patience:
    """How much longer to try, and the pauses between."""

    def __init__(self, seconds: float, lock_patience: LockPatience) -> None:
        self._began_at = time.monotonic()
        self._seconds = seconds
        self._lock_patience = lock_patience
        self._tries = 0
        self._pause_seconds = FIRST_PAUSE_SECONDS

    def allows_retry(self, error: BaseException) -> bool:
        """Whether there is to be a try after the one that failed with ``error``."""
        self._tries += 1
        passed = time.monotonic() - self._began_at
        if locks.is_conflict(error):
            return self._tries < self._lock_patience.tries or passed < self._lock_patience.seconds
        return passed < self._seconds

    def pause(self) -> None:
        time.sleep(self._pause_seconds * random.uniform(0.5, 1.5))
        self._pause_seconds = min(self._pause_seconds * 2, LONGEST_PAUSE_SECONDS)
