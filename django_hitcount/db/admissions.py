"""
SQL of throttles without Redis: a row per name, with the interval that runs.

All intervals are by the clock of the database, which is one for all processes and machines.
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
"""How long an admission is tried again for when it meets a deadlock or a locked database."""

MICROSECONDS_PER_DAY = 24 * 3600 * 1_000_000

AdmissionRows = models.QuerySet[Admission, Admission]


class Clock(models.Func):
    """
    The clock of the database in microseconds since 1970; SQLite's ticks in milliseconds.

    Never the time at which the transaction began, but it may be that at which the
    statement did: before it waited for a lock.
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
"""Not at its end yet: a clock leaves out the fraction of a tick in which the interval began."""

INTERVAL_IS_AHEAD = models.Q(admitted_at__gt=Clock())


class Interval(NamedTuple):
    """What a row says, and the time."""

    begins_at: int
    ends_at: int
    now: int

    @property
    def is_over(self) -> bool:
        return self.now > self.ends_at

    @property
    def is_ahead(self) -> bool:
        """Whether it is yet to begin: the clock was set back since it did."""
        return self.now < self.begins_at


class NotLocked(models.Subquery):
    """What a subquery finds, locked; nothing if somebody else has locked it."""

    template = "(%(subquery)s FOR UPDATE SKIP LOCKED)"


def admit(name: str, microseconds: int, *, using: str, backdated: int = 0) -> bool:
    """
    Admit the caller, unless somebody was admitted under ``name`` whose interval still runs.

    The row says that the interval began ``backdated`` microseconds ago, so that it does not
    tell when that was. A clock that is set back by less goes unnoticed then, and makes the
    interval as much longer.

    Costs one read without a lock if refused. Once the interval is over, costs a transaction
    of one more statement, or of two on MySQL and for a new name.

    Whoever finds the row locked is refused too, as somebody else is about to be admitted.
    Only SQLite and MariaDB before 10.6 wait for it, and two callers under a new name for
    each other.

    Within a transaction of the caller the admission is part of it, so that a rollback
    gives it back. SQLite's write lock is then taken even if refused.

    When the clock turns out to have been set back, an interval begins without an admission.

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
    """Whether admit() would admit somebody now; costs one read without a lock."""
    interval = _read(name, using)
    return interval is None or interval.is_over


def _row(name: str, using: str) -> AdmissionRows:
    return Admission.objects.using(using).filter(name=name)


def _read(name: str, using: str) -> Interval | None:
    found = _row(name, using).values_list("admitted_at", "expires_at", Clock()).first()
    return Interval(*found) if found else None


def _take(name: str, microseconds: int, backdated: int, seen: Interval | None, using: str) -> bool:
    is_ahead = seen is not None and seen.is_ahead
    row = _row(name, using).filter(INTERVAL_IS_AHEAD if is_ahead else INTERVAL_IS_OVER)
    if seen or not _insert(name, using):
        row = _locked(row, using)
    begun = row.update(admitted_at=Clock() - backdated, expires_at=Clock() + microseconds)
    return bool(begun) and not is_ahead


def _insert(name: str, using: str) -> bool:
    """
    Make a row whose interval is over, locked; False if there is one.

    The interval of the caller does not begin here: an INSERT that has waited for another
    one, which was rolled back, writes the time from before it waited.
    """
    return upserts.insert_or_ignore(
        Admission, ("name", "admitted_at", "expires_at"), (name, 0, 0), using
    )


def _locked(row: AdmissionRows, using: str) -> AdmissionRows:
    """
    The row to be updated, locked; none if somebody else has locked it.

    The lock comes first and then the time: an UPDATE that has waited writes the time from
    before it waited, always on MySQL, and on PostgreSQL if whom it waited for rolled back.
    SQLite looks at the clock once it has the lock.
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
    Delete rows whose interval has been over for a day; returns how many.

    Costs two reads, and a read and a statement in a transaction per 500 rows. May run
    beside admit(): at worst one that comes at the very instant is refused, and the next not.

    Raises OperationalError if a batch meets locks for longer than 5 seconds.
    """
    rows = Admission.objects.using(using)
    now = rows.values_list(Clock(), flat=True).first()  # A clock that goes on would use no index.
    if now is None:
        return 0
    old = rows.filter(expires_at__lt=now - MICROSECONDS_PER_DAY)
    return delete_in_batches(old.order_by("expires_at"), using=using)
