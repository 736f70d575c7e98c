"""Leave a server alone that does not answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.transactions import DATABASE_AWAY

FIRST_PAUSE_SECONDS = 1.0
"""How long a server is left alone after its first failure; twice as long after each further one."""

LONGEST_PAUSE_SECONDS = 15.0

FAILURES = (BufferUnavailable, *DATABASE_AWAY)
"""Errors that say: the server is away, slow or read-only."""

logger = logging.getLogger("django_hitcount")


class Breaker:
    """Lets calls through until one fails, then none for a while, then one to see."""

    def __init__(self, server: str) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._pause = 0.0
        self._alone_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the last call failed."""
        return self._pause > 0

    @contextmanager
    def guard(self) -> Iterator[bool]:
        """
        Make a call within; gives whether it is the one to see if the server is back.

        Raises BufferUnavailable without making the call while the server is left alone, so
        that its absence costs a page nothing.
        """
        is_probe = self._admit()
        try:
            yield is_probe
        except FAILURES as exc:
            self._fail(exc, is_probe)
            raise
        except Exception:
            self._recover(is_probe)  # It has answered.
            raise
        self._recover(is_probe)

    def _admit(self) -> bool:
        if not self.is_open:
            return False
        with self._lock:
            now = time.monotonic()
            if now < self._alone_until:
                raise BufferUnavailable(f"{self.server} is left alone after a failure.")
            # This call is the one to see; until it has failed or not, others are turned away.
            self._alone_until = now + LONGEST_PAUSE_SECONDS
            return True

    def try_now(self) -> None:
        """Let the next call through even so: for work that nobody waits for."""
        with self._lock:
            self._alone_until = 0.0

    def _fail(self, error: BaseException, is_probe: bool) -> None:
        with self._lock:
            is_first = not self.is_open
            if is_first or is_probe:  # Others began before; they are no further failure.
                self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
                self._alone_until = time.monotonic() + self._pause
        if is_first:
            logger.warning("%s does not take hits, and is left alone: %s", self.server, error)

    def _recover(self, is_probe: bool) -> None:
        if not is_probe:
            return  # A call that began before the failure says nothing of what came after.
        with self._lock:
            self._pause = 0.0
            self._alone_until = 0.0
        logger.warning("%s takes hits again", self.server)
