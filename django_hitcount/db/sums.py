"""
Read the hits that are in the tables: totals, and the hits of each day.

What the buffer holds meanwhile is added to them. So where a caller asks for it, the same statement
reads which batches are in the ledger, see ledger.py. If two statements read them, a batch that is
applied in between would be counted twice or not at all.

The hits of a model are never added up from all its objects. DailyModelHits has those in slot 0, and
the rows in slots 1..N are few: a compaction folds them into slot 0.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from django.db import connections, models

from django_hitcount.counters.batches import BatchId, CounterDay
from django_hitcount.counters.days import list_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import ledger
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.expressions import KeyText
from django_hitcount.db.slots import match_counters
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, HitSlot, LastBatch, hits_alias
from django_hitcount.db.tables.hits import is_uncompacted

Rows = models.QuerySet[Any, Any]

Sums = Counter[CounterDay]
"""Hits by the name of the counter and the day."""

NO_DAY = models.Value(None, output_field=models.DateField())


class DayRange(NamedTuple):
    """The days to read."""

    first_day: datetime.date
    last_day: datetime.date

    def rows(self, table: type[models.Model]) -> Rows:
        """Return the rows of a table with a column ``day`` that are in the range."""
        found = table._default_manager.using(hits_alias())
        return found.filter(day__range=(self.first_day, self.last_day))


def read_sums(
    keys: Iterable[CounterKey], batch_ids: Iterable[BatchId], days: DayRange | None = None
) -> tuple[dict[CounterKey, int], set[BatchId]]:
    """
    Read the hits of counters, of all time or of some days, and which batches are in the ledger.

    Costs a query.
    """
    table: Rows = days.rows(DailyHitSlot) if days else HitSlot.objects.using(hits_alias())
    rows = table.filter(match_counters(keys)).annotate(no_day=NO_DAY)
    # Generations are in the column of object ids, since MariaDB unites every text with those: they
    # are compared byte by byte.
    columns = rows.values_list("content_type_id", "object_id", "counter", "no_day")
    sums, applied = _read_with_ledger([columns], batch_ids)
    return {CounterKey(*key): int(hits) for *key, _, hits in sums}, applied


def read_days_of_counters(
    keys: Iterable[CounterKey], days: DayRange, batch_ids: Collection[BatchId] = ()
) -> tuple[Sums, set[BatchId]]:
    """
    Read the hits of counters by name and day, and which batches are in the ledger. Costs a query.
    """
    rows = days.rows(DailyHitSlot).filter(match_counters(keys))
    return _read_days([rows], days, batch_ids, of=models.F("counter"))


def read_days_of_each(
    keys: Collection[CounterKey], days: DayRange
) -> dict[CounterKey, dict[datetime.date, int]]:
    """Read the hits of each counter by day. Leaves out days without rows. Costs a query."""
    rows = (
        days.rows(DailyHitSlot)
        .filter(match_counters(keys))
        .values_list("content_type_id", "object_id", "counter", "day")
        .annotate(sum=models.Sum("hits"))
    )
    found: dict[CounterKey, dict[datetime.date, int]] = defaultdict(dict)
    for *key, day, hits in rows if keys else ():
        found[CounterKey(*key)][day] = int(hits)
    return found


def read_days_of_objects(objects: Rows, days: DayRange, *, counter: str) -> Sums:
    """
    Read the hits of the objects of a queryset by name and day. Costs a query.

    The objects must be in the database of the counts.
    """
    keys = objects.order_by().annotate(hitcount_key=KeyText(models.F("pk"), model=objects.model))
    rows = days.rows(DailyHitSlot).filter(
        content_type_id=content_type_id_of(objects.model),
        counter=counter,
        object_id__in=keys.values("hitcount_key"),
    )
    found, _ = _read_days([rows], days, (), of=models.Value(counter))
    return found


def read_days_of_model(
    content_type_id: int | None,
    days: DayRange,
    batch_ids: Collection[BatchId] = (),
    *,
    counter: str,
) -> tuple[Sums, set[BatchId]]:
    """As read_days_of_counters(), for all objects of a model; None: of all models."""
    compacted = days.rows(DailyModelHits).filter(counter=counter)
    connection = connections[hits_alias()]
    uncompacted = days.rows(DailyHitSlot).filter(is_uncompacted(connection), counter=counter)
    if content_type_id is not None:
        compacted = compacted.filter(content_type_id=content_type_id)
        if connection.vendor == "sqlite":
            # By an index of models, it would read all rows. It uses none for an expression.
            model = models.Func(models.F("content_type_id"), template="+%(expressions)s")
            uncompacted = uncompacted.alias(model=model).filter(model=content_type_id)
        else:
            # With each day by name, an index finds the few rows. With a range, it reads all rows.
            each_day = list_days(days.first_day, days.last_day)
            uncompacted = uncompacted.filter(content_type_id=content_type_id, day__in=each_day)
    return _read_days([compacted, uncompacted], days, batch_ids, of=models.Value(counter))


def _read_days(
    tables: Iterable[Rows],
    days: DayRange,
    batch_ids: Iterable[BatchId],
    *,
    of: models.F | models.Value,
) -> tuple[Sums, set[BatchId]]:
    """Read sums by day. ``of`` is the counter: a column only if there is one table."""
    selects = [
        rows.annotate(
            in_partition=models.Value(0), no_generation=models.Value(""), of=of
        ).values_list("in_partition", "no_generation", "of", "day")
        for rows in tables
    ]  # No column has texts of two tables: MySQL and MariaDB do not unite different collations.
    rows, applied = _read_with_ledger(selects, batch_ids)
    sums: Sums = Counter()
    for _, _, counter, day, hits in rows:
        sums[counter, day] += int(hits)
    return sums, applied


def _read_with_ledger(
    selects: Iterable[Rows], batch_ids: Iterable[BatchId]
) -> tuple[list[tuple[Any, ...]], set[BatchId]]:
    """
    Add the sum of hits to each of ``selects``, and read them and the ledger in one statement.

    They have four columns, of which the third is the name of a counter. A row of the ledger is
    (partition, generation, "", no day, number of the last batch).
    """
    first, *others = (rows.annotate(sum=models.Sum("hits")) for rows in selects)
    wanted = [*batch_ids]
    if wanted:
        last_batches = LastBatch.objects.using(hits_alias()).filter(ledger.match_batches(wanted))
        others.append(
            last_batches.annotate(no_counter=models.Value(""), no_day=NO_DAY).values_list(
                "partition", "generation", "no_counter", "no_day", "number"
            )
        )
    rows = [*(first.union(*others, all=True) if others else first)]
    last = {(row[0], row[1]): row[4] for row in rows if not row[2]}
    return [row for row in rows if row[2]], ledger.find_applied(wanted, last)
