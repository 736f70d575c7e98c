"""Prune: delete old rows. Each table has its own limit."""

from __future__ import annotations

from django_hitcount.db.admissions import prune_admissions
from django_hitcount.db.counted_addresses import prune_addresses
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.salts import prune_salts
from django_hitcount.maintenance.error_collection import collect_errors


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
