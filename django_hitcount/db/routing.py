"""The databases of the tables, and of the objects that hits are counted for."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import Model

from django_hitcount.db.tables import HitSlot


def hits_alias() -> str:
    """Return the alias of the database that holds all tables of django_hitcount."""
    # Each hit asks this several times. Without routers, Django takes longer for the same answer.
    return router.db_for_write(HitSlot) if router.routers else DEFAULT_DB_ALIAS


def write_aliases(obj: Model, *, default: str) -> set[str]:
    """Return the databases in which a page may have a transaction that changes ``obj``."""
    aliases = {obj._state.db or default}
    if router.routers:
        # Not type(obj): request.user is a lazy object, which only looks like its model.
        aliases.add(router.db_for_write(obj._meta.model, instance=obj))
    return aliases
