"""
Requests that are refused before they have anything to count: they are counted for the report.

Anybody may send as many of them as they like, so they cost no query and no round trip. A process
adds them up, and writes the sums with the next request that counts, or at most once per minute.
What a process has not written when it ends is not in the report.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import AMOUNT_LIMIT, NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable

LONGEST_WAIT_SECONDS = 60.0

NO_OBJECT = CounterKey(0, "", DEFAULT_COUNTER)
"""The key that they are counted under. A refused hit has no row of an object."""

logger = logging.getLogger("django_hitcount")


class RefusedTokens:
    """The tokens that this process has refused, by reason, and not written yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: Counter[str] = Counter()
        self._written_at = time.monotonic()

    def add(self, reason: str, amount: int) -> None:
        """Add refused tokens. Writes all of them if the last time was a minute ago."""
        with self._lock:
            self._amounts[reason] += amount
            is_due = time.monotonic() - self._written_at > LONGEST_WAIT_SECONDS
        if is_due:
            self.write()

    def write(self) -> None:
        """Write the sums, if there are any. Logs errors. Costs what recording a hit costs."""
        with self._lock:
            amounts, self._amounts = self._amounts, Counter()
            self._written_at = time.monotonic()
        if not amounts:
            return
        day = day_of()
        hits = [
            NewHits(NO_OBJECT, day, min(amount, AMOUNT_LIMIT), reason)
            for reason, amount in amounts.items()
        ]
        try:
            get_buffer().record(hits)
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.error("%d refused tokens are not in the report: %s", amounts.total(), exc)


refused_tokens = RefusedTokens()
