"""Reads of the tables for a page. A page does not wait long for a number: it leaves it out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from django_hitcount.db.locks import is_conflict
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.failures import is_server_away

Guard = Callable[[], AbstractContextManager[Any]]
"""A function that returns a context manager to read the tables in."""

PATIENCE_SECONDS = 1.0
"""How long a page may wait for reads of the tables. The database does not enforce it. When a page
has waited for half of this time, it does not read again."""


@cache
def page_read_breaker() -> Breaker:
    """
    Return the breaker that guards the reads of pages.

    Writes have another breaker: tables may be locked or slow for reads only, or for writes only.
    """
    return Breaker(
        "The database of totals", timeout_seconds=PATIENCE_SECONDS, is_failure=_is_away_or_locked
    )


def _is_away_or_locked(error: BaseException) -> bool:
    """
    Return whether ``error`` is a reason to stop reading.

    So is a lock: reads only wait for locks of whole tables, and these stop all other reads, too.
    """
    return is_server_away(error) or is_conflict(error)
