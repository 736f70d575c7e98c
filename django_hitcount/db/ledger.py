"""
The ledger: which batches are in the slots. A row has the number of the last batch of a generation.

The batches of a partition and generation are applied in the order of their numbers. So the batches
up to that number are in the slots, and no other one is.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from django.db import models
from django.utils import timezone

from django_hitcount.counters.batches import BatchId
from django_hitcount.db import sql
from django_hitcount.db.tables import LastBatch, hits_alias
from django_hitcount.db.transactions import in_transaction

PATIENCE_SECONDS = 2.0
"""How long to retry when the row meets locks. After that, the next flush does it."""

COLUMNS = ("partition", "generation", "number", "claim")

Generation = tuple[int, str]
"""A partition, and the name of a generation in it."""


def open_generation(partition: int, generation: str) -> None:
    """
    Add the row of a generation, unless it is there. Costs a transaction of one statement.

    A flusher does so before it claims the first batch of the generation. So while the ledger knows
    nothing of a generation, no flusher has any of its hits. Raises RuntimeError within another
    transaction, which might roll back.
    """
    insert = partial(_insert, BatchId(partition, generation, 0))
    in_transaction(insert, using=hits_alias(), patience_seconds=PATIENCE_SECONDS, repeatable=True)


class Applied(NamedTuple):
    """The last batch of a generation that is in the slots."""

    number: int = 0
    claim: int = 0
    """The number of the claim that set the batch aside, see Batch.claim_number."""


def add_batch(batch_id: BatchId, claim: int = 0) -> bool:
    """
    Note that a batch is in the slots, as ``claim`` set it aside. Return False if it was there.

    The caller writes the batch in the same transaction, after this. If another flusher is writing
    it, waits for its COMMIT. Costs a statement.
    """
    if _advance(batch_id, claim):
        return True
    # The row is missing after the table was emptied, or restored from a backup. If another flusher
    # adds it at the same time, that may be for an earlier batch: only _advance() tells.
    _insert(batch_id)
    return _advance(batch_id, claim)


def _advance(batch_id: BatchId, claim: int) -> bool:
    rows = LastBatch.objects.using(hits_alias()).filter(
        partition=batch_id.partition, generation=batch_id.generation, number__lt=batch_id.number
    )
    return bool(rows.update(number=batch_id.number, claim=claim, flushed_at=timezone.now()))


def mark_settled(batch_id: BatchId, *, with_earlier: bool = False) -> None:
    """
    Note that no total in Redis lacks a batch in the slots.

    Changes nothing if that is not yet noted of the batch before, unless it holds ``with_earlier``
    ones. Costs a transaction of a statement.
    """
    using = hits_alias()
    partition, generation, number = batch_id
    rows = LastBatch.objects.using(using).filter(partition=partition, generation=generation)
    rows = rows.filter(settled__lt=number) if with_earlier else rows.filter(settled=number - 1)
    mark = partial(rows.update, settled=number)
    in_transaction(mark, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)


def read_unsettled() -> list[BatchId]:
    """Read the last batches of generations with a batch that is not settled. Costs a query."""
    rows = LastBatch.objects.using(hits_alias()).filter(settled__lt=models.F("number"))
    return [BatchId(*row) for row in rows.values_list("partition", "generation", "number")]


def _insert(batch_id: BatchId) -> None:
    values = [batch_id.partition, batch_id.generation, *Applied(), 0]
    sql.insert_or_ignore(LastBatch, (*COLUMNS, "settled"), values, hits_alias())


def read_runs(runs: Iterable[tuple[int, str]]) -> dict[Generation, Applied]:
    """Read the last batches of all generations of partitions and runs. Costs a query."""
    wanted = [models.Q(partition=p, generation__startswith=f"{run}:") for p, run in sorted({*runs})]
    rows = LastBatch.objects.using(hits_alias()).filter(reduce(or_, wanted, models.Q(pk__in=[])))
    found = rows.values_list(*COLUMNS)
    return {(p, generation): Applied(*last) for p, generation, *last in found}


def read_last_flush() -> datetime.datetime | None:
    """Read when a batch was last written into the slots. Costs a query."""
    last: datetime.datetime | None = LastBatch.objects.using(hits_alias()).aggregate(
        last=models.Max("flushed_at")
    )["last"]
    return last


def match_batches(batch_ids: Iterable[BatchId]) -> models.Q:
    """Return a condition for the rows of the ledger with the generations of ``batch_ids``."""
    named = [batch for batch in batch_ids if batch.generation]
    # Other partitions may have these generations, too. One condition for each pair would be more
    # than SQLite takes.
    return models.Q(
        partition__in=sorted({batch.partition for batch in named}),
        generation__in=sorted({batch.generation for batch in named}),
    )


def find_applied(batch_ids: Iterable[BatchId], last: Mapping[Generation, int]) -> set[BatchId]:
    """Return those of ``batch_ids`` that are in the slots, if ``last`` are rows of the ledger."""
    return {
        batch
        for batch in batch_ids
        if batch.number <= last.get((batch.partition, batch.generation), -1)
    }
