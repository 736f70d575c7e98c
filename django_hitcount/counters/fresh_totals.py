"""
Totals and visitors that were read for a list, kept on the objects for as long as a page takes.

They are kept on ``obj._state``, so they are in no field and in no pickle of the object.
"""

from __future__ import annotations

import datetime
from time import monotonic
from typing import Any

from django.db.models import Model

from django_hitcount.counters.keys import CounterRange
from django_hitcount.counters.visitors import Visitors

FRESH_SECONDS = 10.0
"""Longer than a page takes. An object that lives longer reads its total again."""


_ON_STATE = "hitcount_numbers"
"""The attribute of ``obj._state``."""


Days = tuple[datetime.date, datetime.date] | None
"""The first and the last of the days whose visitors were counted; None for a total."""


class RememberedNumbers(dict[tuple[str, Days], tuple[Any, float, object]]):
    """
    By counter and days: the number, when it was read, and the primary key that the object then had.

    If a view copies an object by setting its ``pk`` to None, the key differs, and the number is not
    used. Pickling, as a cache does, empties the dict.
    """

    def __reduce__(self) -> tuple[type[RememberedNumbers], tuple[()]]:
        return RememberedNumbers, ()


def remember_total(obj: Model, total: int, *, counter: str) -> None:
    """Keep an exact total that was read a moment ago on ``obj``."""
    _remember(obj, total, counter, None)


def remember_visitors(obj: Model, count: Visitors, last_days: CounterRange) -> None:
    """Keep visitors that were read a moment ago on ``obj``."""
    _remember(obj, count, last_days.key.counter, last_days[1:])


def find_fresh_total(obj: Model, *, counter: str) -> int | None:
    """Return the total that is remembered on ``obj``; None without a recent one."""
    total: int | None = _find(obj, counter, None)
    return total


def find_fresh_visitors(obj: Model, last_days: CounterRange) -> Visitors | None:
    """Return the visitors that are remembered on ``obj``; None without recent ones."""
    count: Visitors | None = _find(obj, last_days.key.counter, last_days[1:])
    return count


def _remember(obj: Model, number: object, counter: str, days: Days) -> None:
    remembered = vars(obj._state).setdefault(_ON_STATE, RememberedNumbers())
    remembered[counter, days] = number, monotonic(), obj.pk


def _find(obj: Model, counter: str, days: Days) -> Any:
    remembered = vars(obj._state).get(_ON_STATE, {})
    number, read_at, pk = remembered.get((counter, days), (None, 0.0, None))
    return None if monotonic() - read_at > FRESH_SECONDS or pk != obj.pk else number


def discard_totals(obj: Model, *, counter: str | None = None) -> None:
    """Discard what is remembered on ``obj``, of ``counter`` or of all counters."""
    remembered = vars(obj._state).get(_ON_STATE)
    if not remembered:
        return
    for known in [*remembered]:
        if counter in (None, known[0]):
            del remembered[known]
