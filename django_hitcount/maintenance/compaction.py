"""Compact: fold slots 1..N of each counter into slot 0, which then has the sum of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

from django.db.models import Max

from django_hitcount.db import daily_visitors, folding, locks, model_hits, stale_totals
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import DailyHitSlot, HitSlot, RefusedHitSlot, SlotRow
from django_hitcount.db.total_columns import counters_in_columns
from django_hitcount.db.transactions import in_transaction

BATCH_SIZE = 2000
"""Rows that one transaction folds: many enough that the COMMITs take little time, and few enough to
hold locks for about a tenth of a second."""

VISITORS_BATCH_SIZE = 500
"""Rows of visitors that one transaction folds: few enough for the parameters of an old SQLite."""

PATIENCE_SECONDS = 30.0
"""How long to retry a batch that meets locks before the compaction fails."""

LOCK_WAIT_SECONDS = 0.05
"""How long a fold waits for locks: not as long as hits wait for the rows that it has locked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """What a compaction did."""

    rows: int = 0
    """Rows that were folded into slot 0, or into the number of visitors of a day, and deleted."""

    batches: int = 0
    """How many transactions folded them."""


def compact(*, batch_size: int = BATCH_SIZE) -> Compaction:
    """
    Fold slots 1..N of every counter into slot 0. No total changes at any time.

    Also replaces the rows of visitors of closed days by their number. A day is closed from the end
    of the next day on.

    Marks the totals that it folds for HitTotalField, if a model has one. run_upkeep() then writes
    the columns and deletes the marks.

    Leaves rows to the next call if they were written after the start, or if another session has
    locked them (SQLite and MariaDB before 10.6 wait for them). Any number of compactions and
    flushes may run at the same time.

    Costs a transaction of three to six statements per ``batch_size`` rows.

    Raises OperationalError if a batch meets locks for longer than 30 seconds. Rows that were
    folded before stay folded.
    """
    using = hits_alias()
    sizes = [
        size
        for model in (HitSlot, DailyHitSlot, RefusedHitSlot)
        for size in _fold_all(model, batch_size, using)
    ]
    sizes += daily_visitors.fold_closed_days(batch_size=min(batch_size, VISITORS_BATCH_SIZE))
    return Compaction(rows=sum(sizes), batches=len(sizes))


def _fold_all(model: type[SlotRow], batch_size: int, using: str) -> list[int]:
    newest = model._default_manager.using(using).aggregate(newest=Max("pk"))["newest"]
    columns = counters_in_columns() if model is HitSlot else set()
    after: folding.Position | None = None
    sizes: list[int] = []
    while newest is not None:
        fold = partial(_fold, model, after, newest, batch_size, columns, using)
        size, after = in_transaction(
            fold, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True
        )
        if not size:
            break
        sizes.append(size)
    return sizes


def _fold(
    model: type[SlotRow],
    after: folding.Position | None,
    newest: int,
    batch_size: int,
    columns: Collection[tuple[int, str]],
    using: str,
) -> tuple[int, folding.Position | None]:
    """
    Fold the next ``batch_size`` rows. Return how many there were, and the position of the last.

    Locks the rows of slots 1..N first, then those of slot 0, then those of DailyModelHits. Leaves
    out rows that another session has locked: while it waited for them, hits would wait for the rows
    that it has locked.
    """
    with locks.limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        rows = folding.lock_rows(model, after=after, newest=newest, limit=batch_size, using=using)
        if not rows:
            return 0, after
        pks = [row.id for row in rows]
        folding.add_to_slot_0(model, pks, using=using)
        stale_totals.mark_counters_of(pks, columns, using=using)
        folding.delete_rows(model, pks, using=using)
        if model is DailyHitSlot:
            model_hits.add(_sum_by_model(rows), using=using)
    return len(rows), rows[-1].position


def _sum_by_model(rows: Iterable[folding.LockedRow]) -> Counter[model_hits.ModelDay]:
    """Sum up rows of DailyHitSlot by model, counter and day."""
    sums: Counter[model_hits.ModelDay] = Counter()
    for _, (content_type_id, _, counter, day, _), hits in rows:
        sums[content_type_id, counter, day] += hits
    return sums
