"""Read sums of slots and the ledger at one instant."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from django.db import models

from django_hitcount.counters.batches import BatchId
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.slots import any_of
from django_hitcount.db.tables import DailyHitSlot, FlushedBatch, HitSlot


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
