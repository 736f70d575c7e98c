"""
SQL of throttles without Redis: a row per name, with its last interval.

All intervals go by the clock of the database, which is the same for all processes and machines.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from django_hitcount.db import upserts
from django_hitcount.db.tables import Admission
from django_hitcount.db.transactions import delete_in_batches, in_transaction, take_write_lock

PATIENCE_SECONDS = 0.5
"""How long to retry an admission that meets a deadlock or a locked database: a page waits."""

MICROSECONDS_PER_DAY = 24 * 3600 * 1_000_000

AdmissionRows = models.QuerySet[Admission, Admission]


class Clock(models.Func):
    """
    The clock of the database in microseconds since 1970; SQLite's ticks in milliseconds.

    It is never the time at which the transaction began. It may be the time at which the
    statement began, before it waited for a lock.
    """

    arity = 0
    output_field = models.BigIntegerField()

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> Any:
        sql = "(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000000)::bigint"
        return self.as_sql(compiler, connection, template=sql, **context)

    def as_mysql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> Any:
        sql = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
        return self.as_sql(compiler, connection, template=sql, **context)

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> Any:
        sql = "(CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)"
        return self.as_sql(compiler, connection, template=sql, **context)


INTERVAL_IS_OVER = models.Q(expires_at__lt=Clock())
"""Not at the very end: a clock cuts off the fraction of a tick in which the interval began."""

INTERVAL_IS_AHEAD = models.Q(admitted_at__gt=Clock())
"""It begins in the future: the clock was set back after it began."""


class AdmissionInterval(NamedTuple):
    """The interval of a row, and the time at which it was read."""

    begins_at: int
    ends_at: int
    now: int

    @property
    def is_over(self) -> bool:
        return self.now > self.ends_at

    @property
    def is_ahead(self) -> bool:
        """Whether it begins in the future: the clock was set back after it began."""
        return self.now < self.begins_at


class NotLocked(models.Subquery):
    """What a subquery finds, locked; nothing if another session has locked it."""

    template = "(%(subquery)s FOR UPDATE SKIP LOCKED)"


def admit(name: str, microseconds: int, *, using: str, backdated: int = 0) -> bool:
    """
    Admit the caller, unless the interval of the last admission under ``name`` still runs.

    The row says that the interval began ``backdated`` microseconds ago, so that it does not
    show when it began. If the clock is then set back by less, that goes unnoticed and makes
    the interval that much longer.

    Costs one read without a lock if it does not admit. Once the interval is over, costs a
    transaction of one more statement, or of two on MySQL and for a new name.

    A caller that finds the row locked is not admitted either, because another one is about to
    be. Only SQLite and MariaDB before 10.6 wait for the row, and two callers under a new name
    wait for each other.

    In a transaction of the caller the admission is part of it, so a rollback takes it back.
    SQLite then takes the write lock in any case.

    If the clock has been set back, an interval begins without an admission.

    Raises DatabaseError. If the answer of a COMMIT was lost, an interval may have begun.
    """
    is_in_transaction = not connections[using].get_autocommit()
    if is_in_transaction:
        take_write_lock(using)
    interval = _read(name, using)
    if interval and not (interval.is_over or interval.is_ahead):
        return False
    take = partial(_take, name, microseconds, backdated, interval, using)
    if is_in_transaction:
        return take()
    return in_transaction(take, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False)


def is_due(name: str, *, using: str) -> bool:
    """Whether admit() would admit a caller now. Costs one read without a lock."""
    interval = _read(name, using)
    return interval is None or interval.is_over


def _row(name: str, using: str) -> AdmissionRows:
    return Admission.objects.using(using).filter(name=name)


def _read(name: str, using: str) -> AdmissionInterval | None:
    found = _row(name, using).values_list("admitted_at", "expires_at", Clock()).first()
    return AdmissionInterval(*found) if found else None


def _take(
    name: str, microseconds: int, backdated: int, seen: AdmissionInterval | None, using: str
) -> bool:
    is_ahead = seen is not None and seen.is_ahead
    row = _row(name, using).filter(INTERVAL_IS_AHEAD if is_ahead else INTERVAL_IS_OVER)
    if seen or not _insert(name, using):
        row = _lock(row, using)
    begun = row.update(admitted_at=Clock() - backdated, expires_at=Clock() + microseconds)
    return bool(begun) and not is_ahead


def _insert(name: str, using: str) -> bool:
    """
    Insert a row whose interval is over, and lock it; False if there is a row already.

    The interval of the caller does not begin here: an INSERT that has waited for another one
    that rolled back would write the time from before it waited.
    """
    return upserts.insert_or_ignore(
        Admission, ("name", "admitted_at", "expires_at"), (name, 0, 0), using
    )


def _lock(row: AdmissionRows, using: str) -> AdmissionRows:
    """
    Lock the row for the UPDATE; returns no row if another session has locked it.

    The lock comes before the time: an UPDATE that has waited writes the time from before it
    waited, always on MySQL, and on PostgreSQL if the other session rolled back. SQLite looks at
    the clock once it has the lock.
    """
    connection = connections[using]
    rows = Admission.objects.using(using)
    if connection.vendor == "postgresql":
        return rows.filter(name=NotLocked(row.values("name")))
    if not connection.features.has_select_for_update:
        return row
    skip_locked = connection.features.has_select_for_update_skip_locked
    names = row.select_for_update(skip_locked=skip_locked).values_list("name", flat=True)
    return rows.filter(name__in=[*names])


def prune_admissions(*, using: str) -> int:
    """
    Delete rows whose interval has been over for a day; returns the number of rows.

    Costs two reads, and a read and a statement in a transaction per 500 rows. May run at the
    same time as admit(): at worst, a call at that very instant is not admitted, and the next is.

    Raises OperationalError if a batch meets locks for longer than 5 seconds.
    """
    rows = Admission.objects.using(using)
    now = rows.values_list(
        Clock(), flat=True
    ).first()  # A clock in the condition would use no index.
    if now is None:
        return 0
    old = rows.filter(expires_at__lt=now - MICROSECONDS_PER_DAY)
    return delete_in_batches(old.order_by("expires_at"), using=using)
