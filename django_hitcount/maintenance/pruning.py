"""Delete rows that are old: each table says how old."""

from __future__ import annotations

import datetime

from django.db.models import Exists, OuterRef
from django.utils import timezone

from django_hitcount.db.admissions import prune_admissions
from django_hitcount.db.counted_addresses import prune_addresses
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.salts import prune_salts
from django_hitcount.db.tables import FlushedBatch
from django_hitcount.maintenance.error_collection import collect_errors

LEDGER_DAYS = 7
"""How long each batch is kept in the ledger; the last one of a generation is kept for ever."""

LEDGER_ROWS_PER_PRUNE = 1000
"""Rows deleted by one flush: far more than one flush adds, and few enough for a short statement."""


def prune() -> None:
    """
    Delete the visitor salts, admissions and counted addresses whose time is over.

    Nobody can find out who a hash in the tables stands for once its salt is deleted. The salts
    come first. A step that fails does not keep the others from running.

    Costs four queries or more; see prune_salts(), prune_admissions() and prune_addresses().

    Raises an ExceptionGroup of what the database raised. Call it again.
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


def prune_ledger() -> int:
    """
    Delete batches that no flusher can ask for any more; returns the number of rows deleted.

    Costs a read and a delete of up to 1000 rows.
    """
    before = timezone.now() - datetime.timedelta(days=LEDGER_DAYS)
    batches = FlushedBatch.objects.using(hits_alias())
    later = batches.filter(
        partition=OuterRef("partition"),
        generation=OuterRef("generation"),
        number__gt=OuterRef("number"),
    )
    old = batches.filter(Exists(later), flushed_at__lt=before).order_by("flushed_at")
    deleted, _ = batches.filter(
        pk__in=[*old.values_list("pk", flat=True)[:LEDGER_ROWS_PER_PRUNE]]
    ).delete()
    return deleted
