"""Transactions that are tried again."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
    transaction,
)

from django_hitcount.tables import FlushedBatch

FIRST_PAUSE_SECONDS = 0.005
"""Pause before the second try; each further one is twice as long, with jitter."""

LONGEST_PAUSE_SECONDS = 0.5

WORTH_ANOTHER_TRY = (OperationalError, InterfaceError)
"""Errors that say: the database is away or locked."""

DATABASE_AWAY = (*WORTH_ANOTHER_TRY, InternalError)
"""The same, or it is read-only, which psycopg calls an internal error."""

DATABASE_ERRORS = (DatabaseError, InterfaceError)
"""All that a database may answer. None of it is to reach a page."""

NO_BATCH = uuid.UUID(int=0)

T = TypeVar("T")


def in_transaction(
    work: Callable[[], T], *, using: str, patience_seconds: float, repeatable: bool
) -> T:
    """
    Run ``work`` in a transaction; again after a deadlock, lock timeout or lost connection.

    The COMMIT has happened on return: within another transaction it raises RuntimeError, and
    with autocommit switched off TransactionManagementError.

    Gives up once ``patience_seconds`` have passed. If ``work`` is not ``repeatable``, a
    COMMIT whose answer was lost is not tried again either, since it may have happened.

    Raises what the database raised last.
    """
    connection = connections[using]
    require_autocommit(using)
    give_up_at = time.monotonic() + patience_seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        attempt = _Attempt(work)
        try:
            with transaction.atomic(using=using, durable=True):
                return attempt()
        except WORTH_ANOTHER_TRY:
            if time.monotonic() >= give_up_at or not (repeatable or attempt.rolled_back):
                raise
            if connection.in_atomic_block:
                raise  # A test case's own transaction: nothing within it can be tried again.
            if connection.connection and not connection.is_usable():
                connection.close()
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


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


def take_write_lock(using: str) -> None:
    """
    Make a transaction of SQLite the one that writes, before it reads anything.

    One that reads first is refused the lock at once if somebody else writes meanwhile. Other
    databases lock rows; there it does nothing.
    """
    if not connections[using].features.has_select_for_update:
        FlushedBatch.objects.using(using).filter(pk=NO_BATCH).update(flushed_at=None)


class _Attempt(Generic[T]):
    """One run of ``work``; rolled_back tells whether it failed before COMMIT was sent."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.rolled_back = True

    def __call__(self) -> T:
        result = self.work()
        self.rolled_back = False
        return result
