"""Upkeep: what the task and the command compact_hits do. Each table is pruned by its own limit."""

from __future__ import annotations

from django_hitcount.buffers import get_buffer
from django_hitcount.db.admissions import prune_admissions
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.salts import prune_salts
from django_hitcount.db.seen_visitors import prune_addresses
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.column_writing import write_stale_totals
from django_hitcount.maintenance.compaction import Compaction, compact
from django_hitcount.maintenance.error_collection import collect_errors


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


def prune() -> None:
    """
    Delete old visitor salts, admissions and counted addresses.

    Deletes the salts first: after that, nobody can find out which visitor a hash belongs to. If a
    step fails, still runs the others.

    Costs four queries or more; see prune_salts(), prune_admissions() and prune_addresses().

    Raises an ExceptionGroup of the errors of the database. Then call it again.
    """
    using = hits_alias()
    errors: list[Exception] = []
    with collect_errors(errors, "deleting old salts"):
        prune_salts()
    with collect_errors(errors, "deleting old admissions"):
        prune_admissions(using=using)
    with collect_errors(errors, "deleting old addresses"):
        prune_addresses(using=using)
    if errors:
        raise ExceptionGroup("Some old rows were not deleted.", errors)
