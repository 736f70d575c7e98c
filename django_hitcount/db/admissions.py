"""
SQL of admissions: a row per name, with its last interval.

Without Redis, a throttle has a row, and so has each visitor of a counter whose ``repeat`` is a
number of seconds. An admission begins an interval, in which nobody else is admitted under the name.

All intervals use the clock of the database, which is the same for all processes and machines.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from django.db import connections, models

from django_hitcount.db import sql
from django_hitcount.db.sql import Clock
from django_hitcount.db.tables import Admission, hits_alias
from django_hitcount.db.transactions import (
    in_transaction,
    is_in_transaction,
    take_write_lock,
)

PATIENCE_SECONDS = 0.5
"""How long to retry an admission that meets a deadlock or a locked database: a page waits."""

MICROSECONDS_PER_DAY = 24 * 3600 * 1_000_000

AdmissionRows = models.QuerySet[Admission, Admission]


INTERVAL_IS_OVER = models.Q(expires_at__lt=Clock())
"""Later than the end, not equal to it: the stored begin was rounded down by up to a tick."""

INTERVAL_IS_AHEAD = models.Q(admitted_at__gt=Clock())
"""The interval begins in the future: the clock was set back after it began."""


class Interval(NamedTuple):
    """What the interval of a row was when it was read."""

    is_over: bool
    is_ahead: bool
    """It begins in the future: the clock was set back after it began."""


class NotLocked(models.Subquery):
    """A subquery that locks the rows it finds, and skips rows that another session has locked."""

    template = "(%(subquery)s FOR UPDATE SKIP LOCKED)"


def admit(name: str, microseconds: int, *, backdated: int = 0) -> bool:
    """
    Admit the caller, unless the interval of the last admission under ``name`` is not over yet.

    Stores a begin that is ``backdated`` microseconds too early, so that the row does not show when
    a visitor came. If the clock is later set back by less than that, this goes unnoticed, and the
    interval becomes longer by the same time.

    Costs one read without a lock if it does not admit. If it does, also costs a transaction of one
    statement, or of two on MySQL and for a new name.

    If another session has locked the row, the caller is not admitted, because the other one is
    about to be. SQLite and MariaDB before 10.6 wait for the row instead. Two callers under a new
    name wait for each other.

    Within a transaction of the caller, the admission is part of it: a rollback takes it back.
    SQLite then always takes the write lock.

    If the clock was set back, begins an interval without admitting the caller.

    Raises DatabaseError. If the answer to a COMMIT was lost, an interval may have begun.
    """
    using = hits_alias()
    if is_in_transaction(using):
        take_write_lock(using)
    interval = _read(name)
    if interval and not (interval.is_over or interval.is_ahead):
        return False
    take = partial(_take, name, microseconds, backdated, interval)
    if is_in_transaction(using):
        return take()
    return in_transaction(take, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False)


def is_due(name: str) -> bool:
    """Return whether admit() would admit a caller now. Costs one read without a lock."""
    interval = _read(name)
    return interval is None or interval.is_over


def _row(name: str) -> AdmissionRows:
    return Admission.objects.using(hits_alias()).filter(name=name)


def _read(name: str) -> Interval | None:
    found = _row(name).values_list("admitted_at", "expires_at", Clock()).first()
    if found is None:
        return None
    begins_at, ends_at, now = found
    return Interval(is_over=now > ends_at, is_ahead=now < begins_at)


def _take(name: str, microseconds: int, backdated: int, seen: Interval | None) -> bool:
    is_ahead = seen is not None and seen.is_ahead
    row = _row(name).filter(INTERVAL_IS_AHEAD if is_ahead else INTERVAL_IS_OVER)
    if seen or not _insert(name):
        row = _lock(row)
    begun = row.update(admitted_at=Clock() - backdated, expires_at=Clock() + microseconds)
    return bool(begun) and not is_ahead


def _insert(name: str) -> bool:
    """
    Insert a row whose interval is over, and lock it. Returns False if there is a row already.

    The caller's interval does not begin here. If another session inserts the same row and rolls
    back, this INSERT waits, and would write the time at which it began to wait.
    """
    return sql.insert_or_ignore(
        Admission, ("name", "admitted_at", "expires_at"), (name, 0, 0), hits_alias()
    )


def _lock(row: AdmissionRows) -> AdmissionRows:
    """
    Lock the row for the UPDATE. Returns no row if another session has locked it.

    The UPDATE must not wait for the lock: it would write the time at which it began to wait. MySQL
    always does that, and PostgreSQL if the other session rolled back. SQLite reads the clock when
    it has the lock.
    """
    connection = connections[hits_alias()]
    rows = Admission.objects.using(hits_alias())
    if connection.vendor == "postgresql":
        return rows.filter(name=NotLocked(row.values("name")))
    if not connection.features.has_select_for_update:
        return row
    skip_locked = connection.features.has_select_for_update_skip_locked
    names = row.select_for_update(skip_locked=skip_locked).values_list("name", flat=True)
    return rows.filter(name__in=[*names])


def prune_admissions() -> int:
    """
    Delete rows whose interval has been over for a day. Returns the number of rows.

    Costs two reads, and per 500 rows a read and a transaction of one statement. May run at the
    same time as admit(). At worst, a call at that moment is not admitted, and the next one is.

    Raises OperationalError if a piece meets locks for longer than 5 seconds.
    """
    rows = Admission.objects.using(hits_alias())
    # A clock in the condition would use no index.
    now = rows.values_list(Clock(), flat=True).first()
    if now is None:
        return 0
    old = rows.filter(expires_at__lt=now - MICROSECONDS_PER_DAY)
    return sql.delete_in_pieces(old.order_by("expires_at"))
