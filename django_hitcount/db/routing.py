"""The databases of the tables, and of the objects that hits are counted for."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import Model

from django_hitcount.db.tables import HitSlot


def hits_alias() -> str:
    """Return the alias of the database that holds all tables of django_hitcount."""
    # Each hit asks this several times. Without routers, Django takes longer for the same answer.
    return router.db_for_write(HitSlot) if router.routers else DEFAULT_DB_ALIAS


def write_aliases(objs: Sequence[Model], *, default: str) -> set[str]:
    """Return the databases in which a page may have a transaction that changes one of ``objs``."""
    aliases = {obj._state.db or default for obj in objs}
    if router.routers:
        # Not type(obj): request.user is a lazy object, which only looks like its model.
        aliases |= {router.db_for_write(obj._meta.model, instance=obj) for obj in objs}
    return aliases
