"""
SQL on the visitors of each day: write and read sketches and counts, and fold closed days.

A day is open until the end of the next day, then closed. To fold a day is to replace its rows of
SeenVisitor, one per visitor, by their number in DailyVisitors.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial, reduce
from operator import or_
from typing import Any

from django.db import connections, models
from django.db.models.functions import Concat, StrIndex
from django.db.models.lookups import Exact

from django_hitcount import conf
from django_hitcount.counters import split
from django_hitcount.counters.days import open_days
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey
from django_hitcount.counters.visitors import DayInTable, Sketch
from django_hitcount.db import slots, sql
from django_hitcount.db.tables import DailyVisitors, SeenVisitor, hits_alias
from django_hitcount.db.taking import Taken, take_rows
from django_hitcount.db.transactions import in_transaction, take_write_lock

SKETCHES_PER_STATEMENT = 200
"""Rows of one upsert: at 12 KB each, well below what a server accepts in one packet."""

KEYS_PER_STATEMENT = 500
"""Keys in one query: few enough for a short statement, many enough for few queries."""

NO_SKETCH = models.Value(None, output_field=models.BinaryField())

PATIENCE_SECONDS = 30.0
"""How long to retry a piece that meets locks before the compaction fails."""


def write_sketches(visitors: Mapping[DailyVisitorsKey, Sketch]) -> None:
    """
    Write sketches in lock order, and replace existing ones. The caller opens the transaction.

    Costs a statement per 200 sketches.
    """
    rows = [
        DailyVisitors(
            **key.key._asdict(),
            day=key.day,
            visitor_key=key.key_id,
            count=visitors[key].visitors,
            sketch=visitors[key].data,
        )
        for key in sorted(visitors)
    ]
    using = hits_alias()
    names_key = connections[using].features.supports_update_conflicts_with_target
    DailyVisitors.objects.using(using).bulk_create(
        rows,
        batch_size=SKETCHES_PER_STATEMENT,
        update_conflicts=True,
        update_fields=["count", "sketch"],
        unique_fields=[*DailyVisitors.KEY] if names_key else None,
    )


def read_sketches(keys: Collection[DailyVisitorsKey]) -> dict[DailyVisitorsKey, bytes]:
    """Read those sketches of ``keys`` that are in the table. Costs a query per 500 keys."""
    return {key: bytes(sketch) for key, sketch in _read_column(keys, "sketch").items()}


def read_sketch_counts(keys: Collection[DailyVisitorsKey]) -> dict[DailyVisitorsKey, int]:
    """Read the numbers of visitors in the sketches of ``keys``. Costs a query per 500 keys."""
    return _read_column(keys, "count")


def _read_column(keys: Collection[DailyVisitorsKey], column: str) -> dict[DailyVisitorsKey, Any]:
    """Read a column of the rows that have a sketch, by key."""
    found: dict[DailyVisitorsKey, Any] = {}
    for chunk in split(sorted(keys), KEYS_PER_STATEMENT):
        rows = (
            DailyVisitors.objects.using(hits_alias())
            .filter(
                slots.match_counters({key.key for key in chunk}),
                day__in={key.day for key in chunk},
                visitor_key__in={key.key_id for key in chunk},
                sketch__isnull=False,
            )
            .values_list(*DailyVisitors.KEY, column)
        )
        found |= {_key(row): row[-1] for row in rows}
    return {key: found[key] for key in keys if key in found}


def read_days(
    keys: Iterable[CounterKey],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    merged_from: datetime.date | None = None,
    kept_from: datetime.date | None = None,
) -> dict[DailyVisitorsKey, DayInTable]:
    """
    Read the visitors of counters on each day, from both tables.

    Also reads the sketches of those days from ``merged_from`` that may be merged with others, and
    of all days from ``kept_from``, if there are such days.

    Costs one query. If it read the tables one after the other, a fold in between would count
    visitors twice or not at all.
    """
    wanted = slots.match_counters(keys) & models.Q(day__range=(first_day, last_day))
    columns, using = DailyVisitors.KEY, hits_alias()
    with_sketch = []
    if merged_from is not None:
        with_sketch.append(models.Q(day__gte=merged_from) & _may_be_merged())
    if kept_from is not None:
        with_sketch.append(models.Q(day__gte=kept_from))
    sketch: models.Expression = NO_SKETCH
    if with_sketch:
        sketch = models.Case(models.When(reduce(or_, with_sketch), then="sketch"))
    seen = (
        SeenVisitor.objects.using(using)
        .filter(wanted)
        .values(*columns)
        .annotate(count=models.Count("pk"), wanted_sketch=NO_SKETCH)
    )
    rows = (
        DailyVisitors.objects.using(using)
        .filter(wanted)
        .annotate(wanted_sketch=sketch)
        .values_list(*columns, "count", "wanted_sketch")
        .union(seen.values_list(*columns, "count", "wanted_sketch"), all=True)
    )
    found: dict[DailyVisitorsKey, DayInTable] = {}
    for row in rows:
        key, count, data = _key(row), row[-2], row[-1]
        visitors, known, others = found.get(key, DayInTable())
        found[key] = DayInTable(
            visitors + count,
            known if data is None else bytes(data),
            others + count if data is None else others,
        )
    return found


def _may_be_merged() -> models.Q:
    """
    Return a condition for rows whose visitor key other days may have, too.

    The id of a key of one day has that day between two hyphens.
    """
    hyphen = models.Value("-")
    # Without a Cast: on MySQL, its collation might not fit that of the column.
    day = Concat(hyphen, "day", hyphen, output_field=models.CharField())
    return models.Q(Exact(StrIndex("visitor_key", day), 0))


def _key(row: tuple[Any, ...]) -> DailyVisitorsKey:
    return DailyVisitorsKey(CounterKey(*row[:3]), row[3], row[4])


def fold_closed_days(*, piece_size: int) -> list[int]:
    """
    Replace the rows of visitors of closed days by their number.

    The numbers that projects read do not change. Returns the number of rows that each transaction
    folded. Each transaction costs a read and three statements.

    Raises OperationalError if a piece meets locks for longer than 30 seconds.
    """
    using = hits_alias()
    first_open_day, _ = open_days()
    fold = partial(_fold, first_open_day, piece_size)
    sizes = []
    while size := in_transaction(
        fold, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True
    ):
        sizes.append(size)
    return sizes


def _fold(first_open_day: datetime.date, piece_size: int) -> int:
    """Lock up to ``piece_size`` rows in lock order, and fold them. Returns their number."""
    using = hits_alias()
    take_write_lock(using)
    closed = SeenVisitor.objects.using(using).filter(day__lt=first_open_day)
    pks = [*closed.order_by("day", "pk").values_list("pk", flat=True)[:piece_size]]
    return len(take_rows(SeenVisitor, pks, _count)) if pks else 0


def _count(rows: Taken) -> None:
    """Add rows of visitors to the numbers of visitors."""
    amounts = Counter(tuple(row[name] for name in DailyVisitors.KEY) for row in rows)
    options_of = conf.get_config().options_of
    sql.insert_or_add(
        DailyVisitors,
        (*DailyVisitors.KEY, "count"),
        # A counter without ``visitors`` has these rows only to find repeats: they are not counted.
        [(*key, amounts[key]) for key in sorted(amounts) if options_of(key[2]).visitors],
    )
