"""The database that holds the tables."""

from __future__ import annotations

from django.db import router

from django_hitcount.db.tables import HitSlot


def hits_alias() -> str:
    """Return the alias of the database that holds all tables of django_hitcount."""
    return router.db_for_write(HitSlot)
