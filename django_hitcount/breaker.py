"""Leave a server alone that does not answer."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.failures import is_server_away

FIRST_PAUSE_SECONDS = 1.0
"""How long a server is left alone after its first failure; twice as long after each further one."""

LONGEST_PAUSE_SECONDS = 15.0

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

    def guard(self) -> Call:
        """
        Make a call within; gives whether it is the one to see if the server is back.

        Raises BufferUnavailable without making the call while the server is left alone, so
        that its absence costs a page nothing.
        """
        return Call(self)

    def admit(self) -> bool:
        """Whether a call that begins now is the one to see; raises if it is not to be made."""
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

    def fail(self, error: BaseException, is_probe: bool) -> None:
        """Take note that the server did not answer a call."""
        with self._lock:
            is_first = not self.is_open
            if is_first or is_probe:  # Others began before; they are no further failure.
                self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
                self._alone_until = time.monotonic() + self._pause
        if is_first:
            logger.warning("%s does not take hits, and is left alone: %s", self.server, error)

    def recover(self, is_probe: bool) -> None:
        """Take note that the server answered a call."""
        if not is_probe:
            return  # A call that began before the failure says nothing of what came after.
        with self._lock:
            self._pause = 0.0
            self._alone_until = 0.0
        logger.warning("%s takes hits again", self.server)


class Call:
    """
    A call to a server, guarded by a breaker.

    A class and no generator: each hit makes a call, and a generator takes three times as long.
    """

    __slots__ = ("_breaker", "_is_probe")

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self._is_probe = False

    def __enter__(self) -> bool:
        self._is_probe = self._breaker.admit()
        return self._is_probe

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error and is_server_away(error):
            self._breaker.fail(error, self._is_probe)
        elif error is None or isinstance(error, Exception):
            self._breaker.recover(self._is_probe)
