"""The clock of the database, which is the same for all processes and machines."""

from __future__ import annotations

import datetime
from typing import Any

from django.conf import settings
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from django_hitcount.db.tables import VisitorSalt


class Clock(models.Func):
    """
    The current time of the database, in microseconds since 1970. SQLite's has only milliseconds.

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


def read_clock(using: str) -> datetime.datetime:
    """Return the current time of the database, as timezone.now() returns ours. Costs a query."""
    compiler = VisitorSalt.objects.using(using).query.get_compiler(using)
    sql, params = compiler.compile(Clock())
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        (microseconds,) = cursor.fetchone()
    zone = timezone.get_default_timezone()
    now = datetime.datetime.fromtimestamp(microseconds / 1_000_000, zone)
    return now if settings.USE_TZ else now.replace(tzinfo=None)
