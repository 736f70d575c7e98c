"""
Read the hits of each day: of some objects, of a model, or of the whole site.

The hits of a model are never added up from all its objects. DailyModelHits has those in slot 0, and
the rows in slots 1..N are few: a compaction folds them into slot 0.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import models

from django_hitcount.counters.batches import BatchId, CounterDay
from django_hitcount.counters.days import list_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import ledger
from django_hitcount.db.expressions import KeyText
from django_hitcount.db.slots import match_counters
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, LastBatch

Rows = models.QuerySet[Any, Any]

Sums = Counter[CounterDay]
"""Hits by the name of the counter and the day."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DayRange:
    """The days to read, and the database to read them from."""

    first_day: datetime.date
    last_day: datetime.date
    using: str

    def rows(self, table: type[models.Model]) -> Rows:
        """Return the rows of a table with a column ``day`` that are in the range."""
        found = table._default_manager.using(self.using)
        return found.filter(day__range=(self.first_day, self.last_day))


def read_days_of_counters(
    keys: Iterable[CounterKey], days: DayRange, batch_ids: Collection[BatchId] = ()
) -> tuple[Sums, set[BatchId]]:
    """
    Read the hits of counters by name and day, and which batches are in the ledger. Costs a query.

    One statement reads both, so both are from one instant.
    """
    rows = days.rows(DailyHitSlot).filter(match_counters(keys))
    return _read([rows], days, batch_ids, of=models.F("counter"))


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


def read_days_of_objects(
    objects: Rows, days: DayRange, *, content_type_id: int, counter: str
) -> Sums:
    """
    Read the hits of the objects of a queryset by name and day. Costs a query.

    The objects must be in the database of the counts.
    """
    keys = objects.order_by().annotate(hitcount_key=KeyText(models.F("pk"), model=objects.model))
    rows = days.rows(DailyHitSlot).filter(
        content_type_id=content_type_id, counter=counter, object_id__in=keys.values("hitcount_key")
    )
    found, _ = _read([rows], days, (), of=models.Value(counter))
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
    uncompacted = days.rows(DailyHitSlot).filter(counter=counter, is_compacted=False)
    if content_type_id is not None:
        compacted = compacted.filter(content_type_id=content_type_id)
        # With each day by name, an index finds the few rows. With a range alone, it reads all rows.
        each_day = list_days(days.first_day, days.last_day)
        uncompacted = uncompacted.filter(content_type_id=content_type_id, day__in=each_day)
    return _read([compacted, uncompacted], days, batch_ids, of=models.Value(counter))


def _read(
    tables: Iterable[Rows],
    days: DayRange,
    batch_ids: Collection[BatchId],
    *,
    of: models.F | models.Value,
) -> tuple[Sums, set[BatchId]]:
    """
    Read sums and the ledger in one statement.

    A row of the union is (0, "", counter, day, sum), or (partition, generation, "", no day, number
    of the last batch). No column has texts of two tables, since MySQL and MariaDB do not unite
    different collations. ``of`` is the counter: a column only if there is one table.
    """
    first, *others = (
        rows.annotate(in_partition=models.Value(0), no_generation=models.Value(""), of=of)
        .values_list("in_partition", "no_generation", "of", "day")
        .annotate(sum=models.Sum("hits"))
        for rows in tables
    )
    if batch_ids:
        others.append(_last_batches(batch_ids, days.using))
    sums: Sums = Counter()
    last = {}
    union = first.union(*others, all=True) if others else first
    for partition, generation, counter, day, number in union:
        if day is None:
            last[partition, generation] = number
        else:
            sums[counter, day] += int(number)
    return sums, ledger.find_applied(batch_ids, last)


def _last_batches(batch_ids: Iterable[BatchId], using: str) -> Rows:
    """Select the last batch of each generation that one of ``batch_ids`` belongs to."""
    no_day = models.Value(None, output_field=models.DateField())
    return (
        LastBatch.objects.using(using)
        .filter(ledger.match_batches(batch_ids))
        .annotate(no_counter=models.Value(""), day=no_day)
        .values_list("partition", "generation", "no_counter", "day", "number")
    )
