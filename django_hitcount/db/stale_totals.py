"""SQL on StaleTotal: which totals have changed since their columns were written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db import connections

from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.model_hits import match_rows
from django_hitcount.db.sql import Sql
from django_hitcount.db.tables import HitSlot, StaleTotal

MARKS_PER_STATEMENT = 300
"""An old SQLite takes 999 parameters, and a mark has three."""


def mark_counters_of(
    pks: Sequence[int], columns: Collection[tuple[int, str]], *, using: str
) -> None:
    """
    Mark the totals of rows of HitSlot as stale, if there are columns for them.

    Call it in the transaction that folds or deletes the rows, before they are deleted. Costs a
    statement, and nothing if there are no ``columns``; see counters_in_columns().
    """
    if not columns or not pks:
        return
    source = connections[using].ops.quote_name(HitSlot._meta.db_table)
    statement, params = make_mark(columns, source, using=using)
    with connections[using].cursor() as cursor:
        cursor.execute(f"{statement} AND {match_rows(pks)}", params)


def make_mark(columns: Collection[tuple[int, str]], source: str, *, using: str) -> Sql:
    """
    Return a statement that marks the totals of ``source`` that have ``columns``.

    It ends with a condition, so the caller may add others by AND.
    """
    table, key = connections[using].ops.quote_name(StaleTotal._meta.db_table), StaleTotal.KEY
    wanted = " OR ".join(["content_type_id = %s AND counter = %s"] * len(columns))
    statement = (
        f"INSERT INTO {table} ({', '.join(key)}) "  # noqa: S608 - our own names
        f"SELECT DISTINCT {', '.join(key)} FROM {source} WHERE ({wanted})"
    )
    return statement, [value for column in columns for value in column]


def mark(keys: Iterable[CounterKey], *, using: str) -> None:
    """Mark totals as stale. Costs a statement per 300 totals."""
    rows = [
        StaleTotal(
            content_type_id=key.content_type_id, object_id=key.object_id, counter=key.counter
        )
        for key in keys
    ]
    StaleTotal.objects.using(using).bulk_create(rows, batch_size=MARKS_PER_STATEMENT)
