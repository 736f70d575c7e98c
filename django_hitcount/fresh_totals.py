"""
Totals that objects brought along from ``with_hits()``, for the moment that a page takes.

They lie on Django's own state of an object, and so on no field and in no pickle of it.
"""

from __future__ import annotations

from time import monotonic

from django.db.models import Model

FRESH_SECONDS = 10.0
"""Longer than a page takes, and no longer: an object that lives on asks again."""


class BroughtTotals(dict[str, tuple[int, float]]):
    """Totals by counter, and when they were brought; empty once it was in a cache."""

    def __reduce__(self) -> tuple[type[BroughtTotals], tuple[()]]:
        return BroughtTotals, ()


def bring_total(obj: Model, counter: str, total: int) -> None:
    """Keep an exact total that was read this moment on ``obj``."""
    brought = vars(obj._state).setdefault(_ON_STATE, BroughtTotals())
    brought[counter] = total, monotonic()


def fresh_total(obj: Model, counter: str) -> int | None:
    """The total that ``obj`` brought along, unless it did not or that was too long ago."""
    total, brought_at = vars(obj._state).get(_ON_STATE, {}).get(counter, (None, 0.0))
    return None if monotonic() - brought_at > FRESH_SECONDS else total


def drop_total(obj: Model, counter: str) -> None:
    """Forget a total that a hit on ``obj`` has changed."""
    vars(obj._state).get(_ON_STATE, {}).pop(counter, None)


def drop_totals(obj: Model) -> None:
    """Forget all totals that ``obj`` brought along."""
    vars(obj._state).pop(_ON_STATE, None)


_ON_STATE = "hitcount_totals"
