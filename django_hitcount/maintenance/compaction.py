"""
The work of compact_hits: compact, prune, write total columns, and without Redis forget.

To compact is to fold slots 1..N of each counter into slot 0, which then has the sum of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db.models import Max

from django_hitcount.buffers import get_buffer
from django_hitcount.db import daily_visitors, folding
from django_hitcount.db.admissions import prune_admissions
from django_hitcount.db.salts import prune_salts
from django_hitcount.db.seen_visitors import prune_addresses
from django_hitcount.db.tables import DailyHitSlot, HitSlot, RefusedHitSlot, SlotRow, hits_alias
from django_hitcount.db.transactions import in_transaction
from django_hitcount.maintenance import forgetting, run_all
from django_hitcount.maintenance.column_writing import write_stale_totals

PIECE_SIZE = 1500
"""Rows that one transaction folds: many enough that the COMMITs take little time, and few enough to
hold locks for 10 to 50 ms."""

VISITORS_PIECE_SIZE = 500
"""Rows of visitors that one transaction folds: few enough for the parameters of an old SQLite."""

PATIENCE_SECONDS = 30.0
"""How long to retry a piece that meets locks before the compaction fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """What a compaction did."""

    rows: int = 0
    """Rows that were folded into slot 0, or into the number of visitors of a day, and deleted."""

    pieces: int = 0
    """How many transactions folded them."""


def compact_hits() -> Compaction:
    """
    Keep the tables small, delete expired data about visitors, and write the columns of
    HitCountField. Without Redis, also delete the hits of deleted objects; with Redis, a flush does.

    If a step fails, still runs the others. Costs transactions of up to 1,500 rows each, as
    many as it takes.

    Raises an ExceptionGroup of the errors. Then call it again.
    """
    done = Compaction()
    with run_all("Some steps failed: run compact_hits again.") as step:
        # First, however long the other steps take: without the salt, nobody can find out which
        # visitor a hash belongs to.
        with step("deleting old salts"):
            prune_salts()
        with step("deleting old admissions"):
            prune_admissions()
        with step("deleting old addresses"):
            prune_addresses()
        with step("compacting"):
            done = compact()
        with step("writing total columns"):
            write_stale_totals()
        with step("forgetting deleted objects"):
            if not get_buffer().keeps_hits:  # Otherwise flush_hits does it.
                forgetting.forget_deleted(forgetting.read_due())
    return done


def compact(*, piece_size: int = PIECE_SIZE) -> Compaction:
    """
    Fold slots 1..N of every counter into slot 0. No total changes at any time.

    Leaves the hits that were corrected by day in their own slot; see corrections.correct_hits().

    Also replaces the rows of visitors of closed days by their number. A day is closed from the end
    of the next day on.

    Marks the totals that it folds for HitCountField, if a model has one. compact_hits() then writes
    the columns and deletes the marks.

    Leaves rows to the next call if they were written after the start, or if another session has
    locked them (SQLite and MariaDB before 10.6 wait for them). Any number of compactions and
    flushes may run at the same time.

    Costs a transaction per ``piece_size`` rows, with the statements of fold_rows().

    Raises OperationalError if a piece meets locks for longer than 30 seconds. Rows that were
    folded before stay folded.
    """
    sizes = [
        size
        for model in (HitSlot, DailyHitSlot, RefusedHitSlot)
        for size in _fold_all(model, piece_size)
    ]
    sizes += daily_visitors.fold_closed_days(piece_size=min(piece_size, VISITORS_PIECE_SIZE))
    return Compaction(rows=sum(sizes), pieces=len(sizes))


def _fold_all(model: type[SlotRow], piece_size: int) -> list[int]:
    using = hits_alias()
    newest = model._default_manager.using(using).aggregate(newest=Max("pk"))["newest"]
    # So that the next piece need not pass deleted rows, which may still be in the index.
    after: folding.RowPlace = []
    sizes: list[int] = []
    while newest is not None:
        fold = partial(folding.fold_rows, model, after, newest=newest, limit=piece_size)
        folded = in_transaction(
            fold, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True
        )
        if not folded:
            break
        sizes.append(len(folded))
        _, *after, _ = folded[-1]
    return sizes
