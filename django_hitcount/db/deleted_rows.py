"""Writes to DeletedObject that wait for locks only as long as their caller does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import models
from django.utils import timezone

from django_hitcount.db.tables import DeletedObject, hits_alias
from django_hitcount.db.transactions import in_transaction, limit_waits

LOCK_WAIT_SECONDS = 1.0
"""How long a statement waits for a lock before the transaction rolls back and is tried again."""

Rows = models.QuerySet[DeletedObject, DeletedObject]


def write_rows(write: Callable[[Rows], object], *, patience_seconds: float) -> None:
    """Pass the rows to ``write``, in a transaction that is retried when it meets locks."""
    using = hits_alias()

    def write_limited() -> None:
        with limit_waits(using, seconds=min(LOCK_WAIT_SECONDS, patience_seconds)):
            write(DeletedObject.objects.using(using))

    in_transaction(write_limited, using=using, patience_seconds=patience_seconds, repeatable=True)


def make_due(rows: Rows, pks: Sequence[int]) -> None:
    """Make rows due from now on."""
    rows.filter(pk__in=pks).update(due_at=timezone.now())


def finish_or_keep(
    rows: Rows,
    finished: Sequence[int],
    postponed: Sequence[DeletedObject],
    forgotten: Sequence[DeletedObject],
) -> None:
    """Delete rows of which nothing is left, and write what has changed in others."""
    rows.filter(pk__in=finished).delete()
    rows.bulk_update(postponed, ["due_at"])
    rows.bulk_update(forgotten, ["due_at", "is_forgotten"])
