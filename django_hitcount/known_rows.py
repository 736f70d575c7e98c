"""
Rows that hits need, and that are made when they are first needed: those of pages, of named counters
and of the whole site. A process remembers which ones it has made or found.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from django.db import router
from django.db.models import Model

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.primary_keys import named_models
from django_hitcount.db import sql
from django_hitcount.db.counter_keys import find_model
from django_hitcount.db.savepoints import run_after_commit
from django_hitcount.db.transactions import is_in_transaction
from django_hitcount.numbers import errors_logged
from django_hitcount.outages.page_writes import write_on_page

T = TypeVar("T")

MOST_REMEMBERED = 20_000
"""Rows that a process remembers of each kind: 5 MB, and 45 if all paths are as long as can be."""

REMEMBERED_SECONDS = 300.0
"""After this time a row is looked up again: another process may have deleted it."""


_all_known: list[KnownRows[Any]] = []


class KnownRows(Generic[T]):
    """What a process remembers of rows: a bounded number of them, for a limited time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[Hashable, tuple[T, float]] = {}
        _all_known.append(self)

    def recall(self, key: Hashable) -> T | None:
        """Return what is known of a row; None if that is nothing."""
        value, until = self._rows.get(key, (None, 0.0))
        return value if time.monotonic() < until else None

    def remember(self, key: Hashable, value: T, *, using: str) -> None:
        """Remember a row, unless it may be one that a transaction takes back."""
        if is_in_transaction(using):
            return
        with self._lock:
            self._rows.pop(key, None)
            self._rows[key] = value, time.monotonic() + REMEMBERED_SECONDS
            if len(self._rows) > MOST_REMEMBERED:
                del self._rows[next(iter(self._rows))]

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()


_made: KnownRows[bool] = KnownRows()


def clear_known_rows(**kwargs: object) -> None:
    """Forget which rows there are, as after ``migrate`` and ``flush``, and when one is deleted."""
    for known in _all_known:
        known.clear()


def make_named_row(key: ObjectKey) -> None:
    """
    Make the row of an object of ``named_models``, for lists and rankings.

    If a transaction is open, makes it after the COMMIT. Logs errors, and another hit then tries
    again. Costs nothing if this process has done it within five minutes, or for objects of other
    models, else a statement.
    """
    model = find_model(key[0])
    if model not in named_models:
        return
    pk = model._meta.pk.to_python(key[1])
    using = router.db_for_write(model)
    if not _made.recall((using, model, pk)):
        run_after_commit(partial(_make, model, pk, using), databases=[using])


def _make(model: type[Model], pk: object, using: str) -> None:
    column: Any = model._meta.pk
    with errors_logged(f"{model._meta.label} {pk!r} is counted, but not in lists yet"):
        insert_if_missing(model, {column.column: pk}, using=using)
        _made.remember((using, model, pk), True, using=using)


def insert_if_missing(model: type[Model], values: dict[str, Any], *, using: str) -> None:
    """
    Insert a row, by column, unless there is one with its key. Costs a transaction of one statement.

    Raises the database's error, and BufferUnavailable while its breaker is open.
    """
    insert = partial(sql.insert_or_ignore, model, [*values], [*values.values()], using)
    write_on_page(insert, using=using)
