"""Reads of the tables for a page, which shows no number rather than waiting for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from django_hitcount.db.locks import is_conflict
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.failures import is_server_away

Guard = Callable[[], AbstractContextManager[Any]]
"""Returns a context manager to read the tables in."""

PATIENCE_SECONDS = 1.0
"""How long a page may wait for reads of the tables. The database does not enforce it: once a page
has waited for half of it, it does not read again."""


@cache
def page_read_breaker() -> Breaker:
    """
    Return the breaker that guards the reads of pages.

    It is separate from that of writes: tables may be locked or slow for one of them only.
    """
    return Breaker(
        "The database of totals", timeout_seconds=PATIENCE_SECONDS, is_failure=_is_away_or_locked
    )


def _is_away_or_locked(error: BaseException) -> bool:
    """Reads only wait for locks of whole tables, which stop all other reads, too."""
    return is_server_away(error) or is_conflict(error)
