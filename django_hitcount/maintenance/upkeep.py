"""Upkeep: what the task and the command compact_hits do."""

from __future__ import annotations

from django_hitcount.buffers import get_buffer
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.column_writing import write_stale_totals
from django_hitcount.maintenance.compaction import Compaction, compact
from django_hitcount.maintenance.error_collection import collect_errors
from django_hitcount.maintenance.pruning import prune


def run_upkeep() -> Compaction:
    """
    Prune, compact, and write the columns of HitTotalField. Without Redis, also forget deleted
    objects; with Redis, a flush does that.

    If a step fails, still runs the others. Costs what prune(), compact() and write_stale_totals()
    cost, and without Redis what forgetting.forget_deleted() costs.

    Raises an ExceptionGroup of the errors. Then call it again.
    """
    done = Compaction()
    errors: list[Exception] = []
    with collect_errors(errors, "pruning"):
        prune()  # First: old salts must go, however long the other steps take.
    with collect_errors(errors, "compacting"):
        done = compact()
    with collect_errors(errors, "writing total columns"):
        write_stale_totals()
    with collect_errors(errors, "forgetting deleted objects"):
        if not get_buffer().keeps_hits:  # Otherwise flush_hits does it.
            forgetting.forget_deleted(forgetting.read_due())
    if errors:
        raise ExceptionGroup("Some steps failed: run compact_hits again.", errors)
    return done
