"""Leave a server alone that does not answer."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextvars import Token
from types import TracebackType

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import deadlines
from django_hitcount.outages.failures import is_server_away
from django_hitcount.outages.waits import add_wait, has_time, waited_for

FIRST_PAUSE_SECONDS = 0.5
"""How long a server is left alone after its first failure; twice as long after each further one."""

LONGEST_PAUSE_SECONDS = 1.0
"""As long as it refuses at once: then to ask it costs a page nothing."""

LONGEST_PAUSE_IF_SLOW_SECONDS = 15.0
"""As long as it lets a page wait until a timeout."""

SLOW_SECONDS = 0.1
"""A failure that takes longer than this was a timeout."""

SLOW_SHARE = 0.5
"""A call is slow beyond this part of its timeout; a page that has waited as long asks no more."""

SLOW_CALLS = 3
"""Slow calls in a row after which a server is left alone: one alone may be a hiccup."""

SHORT_SHARE = 0.1
"""Part of the timeout that is no wait: a page may have many calls that are answered at once."""

logger = logging.getLogger("django_hitcount")


class Breaker:
    """
    Lets calls through until one fails, then none for a while, then one to see.

    With ``timeout_seconds`` three slow calls in a row are a failure, too, and a page waits
    for that long in all: its calls share one deadline, and once half of it is over, it makes
    no more.
    """

    def __init__(
        self,
        server: str,
        *,
        timeout_seconds: float | None = None,
        is_failure: Callable[[BaseException], bool] = is_server_away,
    ) -> None:
        self.server = server
        self.is_failure = is_failure
        self.timeout_seconds = timeout_seconds
        self._slow_calls = 0
        self._lock = threading.Lock()
        self._pause = 0.0
        self._alone_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the last call failed, or the last ones were slow."""
        return self._pause > 0

    def guard(self) -> GuardedCall:
        """
        Make a call within; gives whether it is the one to see if the server is back.

        Raises BufferUnavailable without making the call while the server is left alone, so
        that its absence costs a page nothing, and if the page has waited for it already.
        """
        return GuardedCall(self)

    def admit(self) -> bool:
        """Whether a call that begins now is the one to see; raises if it is not to be made."""
        if not self.is_open:
            return False
        with self._lock:
            now = time.monotonic()
            if now < self._alone_until:
                raise BufferUnavailable(f"{self.server} is left alone after a failure.")
            # This call is the one to see; until it has failed or not, others are turned away.
            self._alone_until = now + LONGEST_PAUSE_IF_SLOW_SECONDS
            return True

    def try_now(self) -> None:
        """Let the next call through even so: for work that nobody waits for."""
        with self._lock:
            self._alone_until = 0.0

    def fail(self, error: BaseException, is_probe: bool, *, seconds: float) -> None:
        """Take note that the server did not answer a call, which took so many ``seconds``."""
        longest = LONGEST_PAUSE_IF_SLOW_SECONDS if seconds > SLOW_SECONDS else LONGEST_PAUSE_SECONDS
        with self._lock:
            is_first = not self.is_open
            if is_first or is_probe:  # Others began before; they are no further failure.
                self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), longest)
                # Processes that met the failure together are not to come back together.
                self._alone_until = time.monotonic() + self._pause * random.uniform(0.5, 1.0)
        if is_first:
            logger.warning("%s does not answer in time, or says no: %s", self.server, error)

    def answer(self, is_probe: bool, *, is_slow: bool, seconds: float) -> None:
        """Take note that the server answered a call, which took so many ``seconds``."""
        if not is_slow:
            self._slow_calls = 0
            self.recover(is_probe)
            return
        with self._lock:
            self._slow_calls += 1
        if is_probe or self._slow_calls >= SLOW_CALLS:
            self.fail(BufferUnavailable("it answers slowly"), is_probe, seconds=seconds)

    def recover(self, is_probe: bool) -> None:
        """Take note that the server answered a call."""
        if not is_probe:
            return  # A call that began before the failure says nothing of what came after.
        with self._lock:
            self._pause = 0.0
            self._alone_until = 0.0
        logger.warning("%s answers again", self.server)


class GuardedCall:
    """
    A call to a server, guarded by a breaker.

    A class and no generator: each hit makes a call, and a generator takes three times as long.
    """

    __slots__ = ("_began_at", "_breaker", "_deadline", "_is_probe", "_seconds")

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self._is_probe = False
        self._began_at = time.monotonic()
        self._deadline: Token[float | None] | None = None

    def __enter__(self) -> bool:
        timeout = self._breaker.timeout_seconds
        if timeout is None:
            self._is_probe = self._breaker.admit()
            return self._is_probe
        waited = waited_for(self._breaker.server)
        if waited > SLOW_SHARE * timeout:
            raise BufferUnavailable(f"This page has waited for {self._breaker.server} already.")
        self._is_probe = self._breaker.admit()
        self._seconds = timeout - waited
        self._deadline = deadlines.begin(self._seconds)
        return self._is_probe

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_slow = self._end_wait()
        seconds = time.monotonic() - self._began_at
        if error and self._breaker.is_failure(error):
            self._breaker.fail(error, self._is_probe, seconds=seconds)
        elif error is None or isinstance(error, Exception):
            self._breaker.answer(self._is_probe, is_slow=is_slow, seconds=seconds)

    def _end_wait(self) -> bool:
        """Let the page remember the wait; returns whether it was long."""
        timeout = self._breaker.timeout_seconds
        if timeout is None or self._deadline is None:
            return False
        seconds = self._seconds - (deadlines.seconds_left() or 0.0)
        deadlines.end(self._deadline)
        if seconds > SHORT_SHARE * timeout:
            add_wait(self._breaker.server, seconds)
        return seconds > SLOW_SHARE * timeout and not has_time()
