"""
Totals that objects brought along from ``with_hits()``, for the moment that a page takes.

They lie on Django's own state of an object, and so on no field and in no pickle of it.
"""

from __future__ import annotations

from time import monotonic

from django.db.models import Model

FRESH_SECONDS = 10.0
"""Longer than a page takes, and no longer: an object that lives on asks again."""


class BroughtTotals(dict[str, tuple[int, float, object]]):
    """
    Totals by counter, when they were brought, and for which key; empty once it was in a cache.

    The key tells a copy, which Django makes of an object whose ``pk`` is set to None.
    """

    def __reduce__(self) -> tuple[type[BroughtTotals], tuple[()]]:
        return BroughtTotals, ()


def bring_total(obj: Model, counter: str, total: int) -> None:
    """Keep an exact total that was read this moment on ``obj``."""
    brought = vars(obj._state).setdefault(_ON_STATE, BroughtTotals())
    brought[counter] = total, monotonic(), obj.pk


def fresh_total(obj: Model, counter: str) -> int | None:
    """The total that ``obj`` brought along, unless it did not or that was too long ago."""
    brought = vars(obj._state).get(_ON_STATE, {})
    total, brought_at, pk = brought.get(counter, (None, 0.0, None))
    return None if monotonic() - brought_at > FRESH_SECONDS or pk != obj.pk else total


def drop_total(obj: Model, counter: str) -> None:
    """Forget a total that a hit on ``obj`` has changed."""
    vars(obj._state).get(_ON_STATE, {}).pop(counter, None)


def drop_totals(obj: Model) -> None:
    """Forget all totals that ``obj`` brought along."""
    vars(obj._state).pop(_ON_STATE, None)


_ON_STATE = "hitcount_totals"
