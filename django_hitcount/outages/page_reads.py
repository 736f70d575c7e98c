"""Read the tables for a page, which had better show no number than wait for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from django_hitcount.db.locks import is_conflict
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.failures import is_server_away

Guard = Callable[[], AbstractContextManager[Any]]
"""Makes the context in which the tables are read."""

PATIENCE_SECONDS = 1.0
"""What a page may wait for readings of ours. The database cannot be told so: once a page has
waited for half of it, it does not read again."""


@cache
def page_reads() -> Breaker:
    """
    The breaker of what pages read.

    One of its own: tables that are locked or slow to read may take hits, and the reverse.
    """
    return Breaker(
        "The database of totals", timeout_seconds=PATIENCE_SECONDS, is_failure=_is_away_or_locked
    )


def _is_away_or_locked(error: BaseException) -> bool:
    """Reading meets no locks but those of whole tables: then nobody reads for a while."""
    return is_server_away(error) or is_conflict(error)
