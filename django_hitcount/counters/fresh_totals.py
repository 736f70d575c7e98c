"""
Exact totals that ``with_hits()`` has read, kept on the objects for as long as a page takes.

They are kept on ``obj._state``, so they are in no field and in no pickle of the object.
"""

from __future__ import annotations

from time import monotonic

from django.db.models import Model

FRESH_SECONDS = 10.0
"""Longer than a page takes. An object that lives longer reads its total again."""


_ON_STATE = "hitcount_totals"
"""The attribute of ``obj._state``."""


class RememberedTotals(dict[str, tuple[int, float, object]]):
    """
    By counter: the total, when it was read, and the primary key that the object then had.

    If a view copies an object by setting its ``pk`` to None, the key differs, and the total is not
    used. Pickling, as a cache does, empties the dict.
    """

    def __reduce__(self) -> tuple[type[RememberedTotals], tuple[()]]:
        return RememberedTotals, ()


def remember_total(obj: Model, total: int, *, counter: str) -> None:
    """Keep an exact total that was read a moment ago on ``obj``."""
    remembered = vars(obj._state).setdefault(_ON_STATE, RememberedTotals())
    remembered[counter] = total, monotonic(), obj.pk


def find_fresh_total(obj: Model, *, counter: str) -> int | None:
    """Return the total that is remembered on ``obj``; None without a recent one."""
    remembered = vars(obj._state).get(_ON_STATE, {})
    total, read_at, pk = remembered.get(counter, (None, 0.0, None))
    return None if monotonic() - read_at > FRESH_SECONDS or pk != obj.pk else total


def discard_totals(obj: Model, *, counter: str | None = None) -> None:
    """Discard the total of ``counter`` that is remembered on ``obj``, or all totals."""
    if counter is None:
        vars(obj._state).pop(_ON_STATE, None)
    else:
        vars(obj._state).get(_ON_STATE, {}).pop(counter, None)
