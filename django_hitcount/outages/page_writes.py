"""Write what a page waits for, without waiting for locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.transactions import in_transaction, is_in_transaction, limit_waits
from django_hitcount.outages import page_read_breaker

LOCK_WAIT_SECONDS = 0.5
"""How long a page waits for another session that writes the same row, or has locked the table."""

T = TypeVar("T")


def write_on_page(work: Callable[[], T], *, using: str) -> T:
    """
    Run ``work``, which may run twice, in a transaction of its own, or in the one that is open.

    Raises the database's error, and BufferUnavailable while the breaker of page reads is open.
    """

    def write() -> T:
        with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
            return work()

    with page_read_breaker().guard():
        if is_in_transaction(using):
            with savepoint(using):
                return work()
        return in_transaction(write, using=using, patience_seconds=0.1, repeatable=True)
