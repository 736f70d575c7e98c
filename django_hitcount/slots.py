"""
SQL on the sharded tables: add hits in bulk, sum them up.

Every writer takes row locks in the order of CounterKey, then day, then slot.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from django_hitcount import conf
from django_hitcount.counters import CounterKey, Hits, Refused
from django_hitcount.tables import DailyHitSlot, FlushedBatch, HitSlot, RefusedHitSlot, SlotRow
from django_hitcount.transactions import take_write_lock

if TYPE_CHECKING:
    from django_hitcount.buffers.base import BatchId

ROWS_PER_STATEMENT = 1000
"""Rows of one multi-row upsert; beyond this the rate no longer grows."""


def random_slot() -> int:
    """A slot for a writer; never slot 0, which compaction alone writes."""
    return random.randint(1, conf.get_config().slots)


class SlotChoice:
    """A random slot for each try, and none again before all have been tried."""

    def __init__(self) -> None:
        self._tried: set[int] = set()

    def next(self) -> int:
        slot = random_slot()
        if len(self._tried) >= conf.get_config().slots:
            self._tried = set()
        while slot in self._tried:
            slot = random_slot()
        self._tried.add(slot)
        return slot


def add_hits(hits: Iterable[Hits], *, slot: int, using: str) -> None:
    """
    Add hits to the tables of those that count and of those refused, in ``slot``.

    The caller opens the transaction. Costs two statements per thousand different counters,
    and one more if hits are refused.
    """
    totals: Counter[CounterKey] = Counter()
    daily: Counter[tuple[CounterKey, datetime.date]] = Counter()
    refused: Counter[Refused] = Counter()
    for hit in hits:
        if not hit.refusal:
            totals[hit.key] += hit.amount
            daily[hit.key, hit.day] += hit.amount
        elif hit.amount > 0:
            refused[Refused(hit.day, hit.key.counter, hit.refusal)] += hit.amount
    add_totals(totals, slot=slot, using=using)
    add_daily(daily, slot=slot, using=using)
    add_refused(refused, slot=slot, using=using)


def add_totals(amounts: Mapping[CounterKey, int], *, slot: int, using: str) -> None:
    """Add to all-time totals, in ``slot``, in lock order."""
    rows = [(*key, slot, amounts[key]) for key in sorted(amounts)]
    upsert(HitSlot, rows, using)


def add_daily(
    amounts: Mapping[tuple[CounterKey, datetime.date], int], *, slot: int, using: str
) -> None:
    """Add to daily totals, in ``slot``, in lock order."""
    rows = [(*key, day, slot, amounts[key, day]) for key, day in sorted(amounts)]
    upsert(DailyHitSlot, rows, using)


def add_refused(amounts: Mapping[Refused, int], *, slot: int, using: str) -> None:
    """Add to the hits that were refused, in ``slot``, in lock order."""
    rows = [(*key, slot, amounts[key]) for key in sorted(amounts)]
    upsert(RefusedHitSlot, rows, using)


def upsert(model: type[SlotRow], rows: Sequence[tuple[Any, ...]], using: str) -> None:
    """Add rows of (*model.KEY, slot, hits), each to the row that is there already, if any."""
    add_up(model, (*model.KEY, "slot", "hits"), rows, using)


def add_up(
    model: type[models.Model],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    using: str,
) -> None:
    """
    Insert rows of ``columns``; where one is there already, add its last column to that.

    The columns before the last are those of a unique constraint.
    """
    connection = connections[using]
    limit = connection.features.max_query_params or ROWS_PER_STATEMENT * len(columns)
    size = min(ROWS_PER_STATEMENT, limit // len(columns))
    with connection.cursor() as cursor:
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            cursor.execute(*_upsert_statement(connection, model, columns, chunk))


def _upsert_statement(
    connection: BaseDatabaseWrapper,
    model: type[models.Model],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> tuple[str, list[Any]]:
    """
    INSERT of ``rows`` that adds to the last column where the row is there already.

    Django knows how each server spells an upsert, but only one that overwrites; the
    assignment is made an addition.
    """
    quote = connection.ops.quote_name
    *key, last = columns
    table, added = quote(model._meta.db_table), quote(last)
    overwrite = connection.ops.on_conflict_suffix_sql(
        list(model._meta.concrete_fields), OnConflict.UPDATE, [last], key
    )
    add = overwrite.replace(f"{added} = ", f"{added} = {table}.{added} + ", 1)
    is_postgresql = connection.vendor == "postgresql"
    source, values = _arrays(connection, model, columns, rows) if is_postgresql else _values(rows)
    into = f"INSERT INTO {table} ({', '.join(map(quote, columns))})"
    return f"{into} {source} {add}", values


def _values(rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[Any]]:
    row = f"({', '.join(['%s'] * len(rows[0]))})"
    return f"VALUES {', '.join([row] * len(rows))}", [value for row in rows for value in row]


def _arrays(
    connection: BaseDatabaseWrapper,
    model: type[models.Model],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> tuple[str, list[Any]]:
    """An array per column: psycopg takes longer over thousands of placeholders than the server."""
    types = [str(model._meta.get_field(column).db_type(connection)) for column in columns]
    arrays = ", ".join(f"%s::{type_.partition('(')[0]}[]" for type_ in types)
    values = [list(column) for column in zip(*rows, strict=True)]
    return f"SELECT * FROM unnest({arrays})", values  # noqa: S608 - types of our own columns


def lock_rows(rows: models.QuerySet[Any, Any], using: str) -> models.QuerySet[Any, Any]:
    """
    Rows of a sharded table, locked in lock order once they are read; for a transaction.

    Those that somebody else has locked are left out, where the database can do that.
    """
    take_write_lock(using)
    skip_locked = connections[using].features.has_select_for_update_skip_locked
    return rows.order_by(*rows.model.KEY, "slot").select_for_update(skip_locked=skip_locked)


def insert_or_ignore(
    model: type[models.Model], columns: Sequence[str], values: Sequence[Any], using: str
) -> bool:
    """
    Insert a row; False if one with its unique key is there, or is about to be committed.

    The values are to be checked before: MySQL ignores also what does not fit.
    """
    connection = connections[using]
    quote, ops = connection.ops.quote_name, connection.ops
    insert = ops.insert_statement(on_conflict=OnConflict.IGNORE)
    ignore = ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], [])
    places = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f"{insert} {quote(model._meta.db_table)} ({', '.join(map(quote, columns))}) "
            f"VALUES ({places}) {ignore}",
            values,
        )
        return bool(cursor.rowcount)


def sums_and_ledger(
    keys: Iterable[CounterKey], batch_ids: Iterable[BatchId], *, using: str
) -> tuple[dict[CounterKey, int], set[BatchId]]:
    """
    The slot sums of counters, and which batches are in the ledger, at one instant.

    Both come from one statement, hence from one snapshot: read one after the other, a
    batch applied in between would be counted twice or not at all.
    """
    rows = (
        HitSlot.objects.using(using)
        .filter(any_of(keys))
        .values_list("content_type_id", "object_id", "counter")
        .annotate(total=models.Sum("hits"))
    )
    found, applied = _with_ledger(rows, list(batch_ids), using)
    return {CounterKey(*row[:3]): int(row[3]) for row in found}, applied


def sum_between_and_ledger(
    key: CounterKey,
    first_day: datetime.date,
    last_day: datetime.date,
    batch_ids: Iterable[BatchId],
    *,
    using: str,
) -> tuple[int, set[BatchId]]:
    """The hits of one counter from one day to another, as sums_and_ledger() reads them."""
    rows = (
        DailyHitSlot.objects.using(using)
        .filter(any_of([key]), day__range=(first_day, last_day))
        .values_list("content_type_id", "object_id", "counter")
        .annotate(total=models.Sum("hits"))
    )
    found, applied = _with_ledger(rows, list(batch_ids), using)
    return sum(int(row[3]) for row in found), applied


def _with_ledger(
    rows: models.QuerySet[Any, Any], batch_ids: list[BatchId], using: str
) -> tuple[list[tuple[Any, ...]], set[BatchId]]:
    """
    Evaluate ``rows`` united with rows of the ledger, and tell which batches it has.

    A row (-1 - i, "", "", number) says which was the last batch of generation i.
    """
    if not batch_ids:
        return list(rows), set()
    generations = list(dict.fromkeys((held.partition, held.generation) for held in batch_ids))
    wanted = [models.Q(partition=p, generation=generation) for p, generation in generations]
    place = models.Case(
        *(models.When(of_one, then=models.Value(-1 - i)) for i, of_one in enumerate(wanted)),
        output_field=models.IntegerField(),
    )
    ledger = (
        FlushedBatch.objects.using(using)
        .filter(reduce(or_, wanted))
        .annotate(place=place, no_object=models.Value(""), no_counter=models.Value(""))
        .values_list("place", "no_object", "no_counter")
        .annotate(last=models.Max("number"))
    )
    united = list(rows.union(ledger, all=True))
    last = {generations[-1 - row[0]]: row[3] for row in united if row[0] < 0}
    applied = {
        held for held in batch_ids if held.number <= last.get((held.partition, held.generation), -1)
    }
    return [row for row in united if row[0] >= 0], applied


def any_of(keys: Iterable[CounterKey]) -> models.Q:
    """A condition that holds for the rows of ``keys``, one index range per model and counter."""
    condition = models.Q(pk__in=[])
    by_counter = sorted(keys, key=_without_object)
    for (content_type_id, counter), group in groupby(by_counter, key=_without_object):
        condition |= models.Q(
            content_type_id=content_type_id,
            counter=counter,
            object_id__in=[key.object_id for key in group],
        )
    return condition


def _without_object(key: CounterKey) -> tuple[int, str]:
    return key.content_type_id, key.counter
