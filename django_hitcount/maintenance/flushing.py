"""
Flush: move hits from the buffer to the slots. Each partition takes three steps, which may fail at
any point and can be repeated:

1. claim: set the pending hits aside as a batch, which has an id;
2. apply: write the batch into the slots, and its number into the ledger, in one transaction;
3. settle: drop the batch from the buffer.

The ledger is the table LastBatch. There is no lock. If two flushers claim the same partition, both
get the same batch, but only one can raise the number in the ledger. If a flusher dies before it
settles a batch, the next claim returns this batch. If Redis goes back in time and returns a batch
that was applied already, it has the same id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from django.contrib.contenttypes.models import ContentType

from django_hitcount import conf
from django_hitcount.buffers import Buffer, get_buffer
from django_hitcount.counters.batches import Batch, BatchId
from django_hitcount.db import daily_visitors, ledger, slots
from django_hitcount.db.tables import DeletedObject, hits_alias
from django_hitcount.db.transactions import in_transaction, limit_waits
from django_hitcount.exceptions import HitCountError
from django_hitcount.maintenance import forgetting, run_all
from django_hitcount.outages.waits import in_background
from django_hitcount.signals import hits_flushed

PATIENCE_SECONDS = 10.0
"""How long to retry a batch. After that, it is left to the next flush."""

LOCK_WAIT_SECONDS = 1.0
"""How long a batch waits for a locked row before it is tried in another slot."""

logger = logging.getLogger("django_hitcount")


@dataclass(frozen=True, kw_only=True, slots=True)
class Flush:
    """What a flush did."""

    batches: int = 0
    """Batches that this flush applied. Does not include those that another flush applied first, nor
    one whose COMMIT was not answered."""

    counters: int = 0
    """Counters in these batches."""

    hits: int = 0
    """Hits in these batches."""

    malformed: tuple[bytes, ...] = ()
    """Fields without valid hits. They are moved in Redis, to the keys "malformed"."""

    def __add__(self, other: Flush) -> Flush:
        names = [field.name for field in fields(self)]
        return Flush(**{name: getattr(self, name) + getattr(other, name) for name in names})


@in_background()
def flush_hits(partitions: Iterable[int] | None = None) -> Flush:
    """
    Write the hits that wait in Redis into the tables, from all partitions or from some.

    If a partition fails, still flushes the others. A flush of all partitions also deletes the hits
    of deleted objects.

    Costs for each partition that holds hits:

    - three round trips, and one more for a new generation, and per 2,000 fields or 100 sketches;
    - a query for the content types, and what merge_known_visitors() costs;
    - one transaction, of an update, two statements per thousand counters, and some more for refused
      hits and sketches;
    - an update in a transaction of its own.

    A partition without hits costs a round trip, and what the buffer missed at least a query.
    A flush of all partitions also costs two queries: for batches that were never settled, and for
    deleted objects.

    Raises BufferUnavailable if Redis does not answer at all, and an ExceptionGroup of the errors
    of single steps. No hit is lost: flush again.
    """
    buffer = get_buffer()
    done = Flush()
    deleted: list[DeletedObject] = []
    undelivered, unflushed = {*range(conf.MOST_PARTITIONS)}, set()
    with run_all("Some hits were not flushed. They are kept: flush again.") as step:
        if partitions is None:
            with step("reading which objects were deleted"):
                deleted = forgetting.read_due()
        with step("delivering to the buffer what it missed"):
            buffer.catch_up()
            undelivered.clear()
        for partition in buffer.partitions() if partitions is None else partitions:
            unflushed.add(partition)
            with step(f"flushing partition {partition}"):
                done += flush_partition(buffer, partition)
                unflushed.remove(partition)
        if partitions is None and not unflushed:
            with step("dropping the totals that may lack a batch"):
                drop_wrong_totals(buffer)
        with step("forgetting deleted objects"):
            forgetting.forget_deleted(deleted, unflushed=undelivered | unflushed)
    return done


def drop_wrong_totals(buffer: Buffer) -> None:
    """
    Drop the totals of partitions with a batch that was applied, but never settled.

    All partitions were flushed before, so Redis has lost that batch. It may have loaded totals
    between the loss and the COMMIT. Costs a query, and if there are such batches, what
    discard_all_totals() costs, and an update for each of them.
    """
    if lost := ledger.read_unsettled():
        buffer.discard_all_totals({batch.partition for batch in lost})
        for batch_id in lost:
            ledger.mark_settled(batch_id, with_earlier=True)


def flush_partition(buffer: Buffer, partition: int) -> Flush:
    """Claim, apply and settle the hits of one partition."""
    done = Flush()
    claimed: set[BatchId] = set()
    # A claim first returns what earlier flushers and runs of Redis have left. Claim again after
    # that, until the batch has the hits that are pending now.
    while batch := buffer.claim(partition):
        if batch.id in claimed:
            raise HitCountError(f"The buffer offers {batch.id} again although it was settled.")
        claimed.add(batch.id)
        done += flush_batch(buffer, batch)
        if not batch.is_left_over:
            break
    return done


def flush_batch(buffer: Buffer, batch: Batch) -> Flush:
    """Apply and settle one batch."""
    batch = merge_known_visitors(buffer, mark_malformed(batch))
    is_applied_here = apply(batch)
    if is_applied_here:
        hits_flushed.send_robust(type(buffer), totals=batch.totals, daily=batch.daily)
    is_settled_here = buffer.settle(batch)
    if is_applied_here and not is_settled_here:
        # Redis may have lost the batch, and then loaded totals before the batch was applied. These
        # totals lack its hits. If this process dies before it drops them, the next flush does so.
        buffer.discard_totals(batch.totals)
    if is_applied_here or is_settled_here:
        ledger.mark_settled(batch.id)
    malformed = tuple(batch.malformed) if is_settled_here else ()
    if malformed:
        message = 'Partition %d had %d malformed fields. They are moved to "malformed": %r'
        logger.error(message, batch.id.partition, len(malformed), malformed)
    if not is_applied_here:
        return Flush(malformed=malformed)
    hits = batch.totals.values()
    return Flush(batches=1, counters=len(hits), hits=sum(hits), malformed=malformed)


def mark_malformed(batch: Batch) -> Batch:
    """Treat the hits of content types that do not exist as malformed. Costs a query."""
    wanted = {key.content_type_id for key in (*batch.totals, *(v.key for v in batch.visitors))}
    types = ContentType.objects.using(hits_alias()).filter(pk__in=wanted)
    known = {*types.values_list("pk", flat=True)}
    if wanted == known:
        return batch
    totals = {key: n for key, n in batch.totals.items() if key.content_type_id in known}
    daily = {kd: n for kd, n in batch.daily.items() if kd[0].content_type_id in known}
    visitors = {v: sketch for v, sketch in batch.visitors.items() if v.key.content_type_id in known}
    return replace(
        batch,
        totals=totals,
        daily=daily,
        visitors=visitors,
        malformed=[
            *batch.malformed,
            *(key.on(day).encode() for key, day in batch.daily.keys() - daily.keys()),
            *(key.field.encode() for key in batch.visitors.keys() - visitors.keys()),
        ],
    )


def merge_known_visitors(buffer: Buffer, batch: Batch) -> Batch:
    """
    Add visitors from the table to those sketches of a batch that may lack some of them.

    A sketch that Redis began since the last flush may lack visitors: Redis may have lost an older
    sketch of the same day. A sketch with fewer visitors than the table's is older than that one.

    Costs a query per 500 sketches. If a sketch may lack visitors, costs one more query and a round
    trip.
    """
    counts = daily_visitors.read_sketch_counts(batch.visitors)
    behind = {key for key in counts if batch.visitors[key].is_behind(counts[key])}
    known = daily_visitors.read_sketches(behind)
    if not known:
        return batch
    return replace(batch, visitors={**batch.visitors, **buffer.merge_sketches(known)})


def apply(batch: Batch) -> bool:
    """
    Write a batch into the slots. Return False if it has been applied already.

    First adds the batch to the ledger. If another flusher is applying the same batch, this waits
    for its COMMIT, or is rolled back, and changes nothing. So nothing is written twice.

    Raises the error of the database.
    """
    using = hits_alias()
    choices = slots.choose_slots()

    def write() -> bool:
        if not ledger.add_batch(batch.id, batch.claim_number):
            return False
        slot = next(choices)
        with limit_waits(using, seconds=LOCK_WAIT_SECONDS):
            slots.add_totals(batch.totals, slot=slot)
            slots.add_daily(batch.daily, slot=slot)
            slots.add_refused(batch.refused, slot=slot)
            daily_visitors.write_sketches(batch.visitors)
        return True

    return in_transaction(write, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)
