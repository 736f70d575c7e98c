"""
Read the sums of slots and the ledger at one instant.

The ledger says which batches are in the slots, see ledger.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models

from django_hitcount.counters.batches import BatchId
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import ledger
from django_hitcount.db.slots import match_counters
from django_hitcount.db.tables import HitSlot, LastBatch

FROM_SLOTS, FROM_LEDGER = "slots", "ledger"
"""The values of a column of the union that says which table a row is from."""


def read_sums(
    keys: Iterable[CounterKey], batch_ids: Iterable[BatchId], *, using: str
) -> tuple[dict[CounterKey, int], set[BatchId]]:
    """
    Read the slot sums of counters, and which batches are in the ledger. Costs a query.

    One statement reads both, so both are from one instant. If two statements read them, a batch
    that is applied in between would be counted twice or not at all.
    """
    rows = HitSlot.objects.using(using).filter(match_counters(keys))
    sums, applied = _read_with_ledger(rows, batch_ids, using)
    return {CounterKey(*key): int(hits) for *key, hits in sums}, applied


def _read_with_ledger(
    rows: models.QuerySet[Any, Any], batch_ids: Iterable[BatchId], using: str
) -> tuple[list[tuple[Any, ...]], set[BatchId]]:
    """
    Read the sum of ``rows`` for each counter, and the ledger, in one statement.

    A row of the union is (content type id, object id, counter, "slots", sum), or
    (partition, generation, "", "ledger", number of the last batch). A generation is in the column
    of object ids, since MariaDB unites every text with those: they are compared byte by byte.
    """
    sums = (
        rows.annotate(table=models.Value(FROM_SLOTS))
        .values_list("content_type_id", "object_id", "counter", "table")
        .annotate(sum=models.Sum("hits"))
    )
    wanted = list(batch_ids)
    united = list(sums.union(_ledger_rows(wanted, using), all=True) if wanted else sums)
    last = {(row[0], row[1]): row[4] for row in united if row[3] == FROM_LEDGER}
    applied = ledger.find_applied(wanted, last)
    return [(*row[:3], row[4]) for row in united if row[3] == FROM_SLOTS], applied


def _ledger_rows(batch_ids: Iterable[BatchId], using: str) -> models.QuerySet[Any, Any]:
    """Select the last batch of each generation that one of ``batch_ids`` belongs to."""
    return (
        LastBatch.objects.using(using)
        .filter(ledger.match_batches(batch_ids))
        .annotate(no_counter=models.Value(""), table=models.Value(FROM_LEDGER))
        .values_list("partition", "generation", "no_counter", "table", "number")
    )
