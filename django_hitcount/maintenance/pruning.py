"""Prune: delete old rows. Each table has its own limit."""

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
"""How long a batch is kept in the ledger. The last batch of each generation is kept for ever."""

LEDGER_ROWS_PER_PRUNE = 1000
"""Rows that one flush deletes: far more than it adds, and few enough for a short statement."""


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


def prune_ledger() -> int:
    """
    Delete old batches from the ledger, which no flusher needs. Returns the number of rows.

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
