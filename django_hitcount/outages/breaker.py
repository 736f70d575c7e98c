"""Stop calling a server that fails or answers slowly, so that pages do not wait for it."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextvars import Token
from types import TracebackType

from django.utils.asyncio import async_unsafe

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import deadlines
from django_hitcount.outages.failures import is_server_away
from django_hitcount.outages.waits import add_wait, is_in_background, seconds_waited

FIRST_PAUSE_SECONDS = 0.5
"""The pause in calls to a server after its first failure. Doubles with each further failure."""

LONGEST_PAUSE_SECONDS = 1.0
"""The longest pause if calls fail at once. It may be short: such a call costs a page nothing."""

LONGEST_PAUSE_IF_SLOW_SECONDS = 15.0
"""The longest pause if calls fail by a timeout: a page waits for it at each probe."""

SLOW_SECONDS = 0.1
"""A failure that takes longer than this counts as a timeout."""

SLOW_SHARE = 0.5
"""A call that takes more than this share of its timeout is slow. A page that has waited for as
long makes no further calls."""

SLOW_CALLS = 3
"""Slow calls in a row that count as a failure. A single one may have another cause."""

SHORT_SHARE = 0.1
"""A shorter call is not added to the waits of a page, so that it may make many fast calls."""

ASYNC_MESSAGE = (
    "You cannot wait for Redis or the database in an async context. Await the async version of the "
    "function, such as arecord_hit(), or use sync_to_async(), also to render a template with tags "
    "of hits."
)
"""The text of the SynchronousOnlyOperation. It is the same with and without Redis, and comes at the
first try. A page would else fail only when Redis does not know a number, and it needs a query."""

logger = logging.getLogger("django_hitcount")


class Breaker:
    """
    A circuit breaker: guards the calls to one server.

    After a call has failed, rejects all calls for a while: the pause. Then it lets a single call
    through: the probe. When the probe succeeds, all calls are let through again.

    With ``timeout_seconds``, three slow calls in a row count as a failure, too. All calls of a page
    then share this time. When half of it is over, the page makes no further calls.
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
        self._paused_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the server failed or was slow, and no probe has succeeded since."""
        return self._pause > 0

    @async_unsafe(ASYNC_MESSAGE)
    def guard(self) -> GuardedCall:
        """
        Return a context manager to make a call in. Its value is True if the call is the probe.

        Entering it raises BufferUnavailable during a pause, or if the page has already waited for
        the server. So a server that is away costs a page nothing.

        Raises SynchronousOnlyOperation in an async context.
        """
        return GuardedCall(self)

    def start_call(self) -> bool:
        """Return whether a call that starts now is the probe. Raise BufferUnavailable if paused."""
        if not self.is_open:
            return False
        with self._lock:
            now = time.monotonic()
            if now < self._paused_until:
                raise BufferUnavailable(f"{self.server} is not called again yet after a failure.")
            # Until the probe has ended, reject all other calls.
            self._paused_until = now + LONGEST_PAUSE_IF_SLOW_SECONDS
            return True

    def try_now(self) -> None:
        """End the pause. For work in the background, which may wait for a timeout."""
        with self._lock:
            self._paused_until = 0.0

    def report_failure(self, error: BaseException, is_probe: bool, *, seconds: float) -> None:
        """Start or prolong the pause, after a call that took ``seconds`` has failed."""
        longest = LONGEST_PAUSE_IF_SLOW_SECONDS if seconds > SLOW_SECONDS else LONGEST_PAUSE_SECONDS
        with self._lock:
            is_first = not self.is_open
            if is_first or is_probe:  # All other calls started before the first failure.
                self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), longest)
                # Processes that failed at the same time do not probe at the same time.
                self._paused_until = time.monotonic() + self._pause * random.uniform(0.5, 1.0)
        if is_first:
            message = "%s has failed or is too slow, and is not called for a while: %s"
            logger.warning(message, self.server, error)

    def report_answer(self, is_probe: bool, *, is_slow: bool, seconds: float) -> None:
        """Count slow answers. After a fast answer to the probe, end the pause."""
        if not is_slow:
            self._slow_calls = 0
            if is_probe:
                self._close()
            return
        with self._lock:
            self._slow_calls += 1
        if is_probe or self._slow_calls >= SLOW_CALLS:
            error = BufferUnavailable("it answers slowly")
            self.report_failure(error, is_probe, seconds=seconds)

    def _close(self) -> None:
        with self._lock:
            self._pause = 0.0
            self._paused_until = 0.0
        logger.warning("%s answers again", self.server)


class GuardedCall:
    """
    A call to a server that a breaker guards.

    It is a class because each hit makes a call, and a generator would take three times as long.
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
            self._is_probe = self._breaker.start_call()
            return self._is_probe
        waited = seconds_waited(self._breaker.server)
        if waited > SLOW_SHARE * timeout:
            raise BufferUnavailable(f"This page has already waited for {self._breaker.server}.")
        self._is_probe = self._breaker.start_call()
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
            self._breaker.report_failure(error, self._is_probe, seconds=seconds)
        elif error is None or isinstance(error, Exception):
            self._breaker.report_answer(self._is_probe, is_slow=is_slow, seconds=seconds)

    def _end_wait(self) -> bool:
        """Add the time of the call to the waits of the page. Return whether the call was slow."""
        timeout = self._breaker.timeout_seconds
        if timeout is None or self._deadline is None:
            return False
        seconds = self._seconds - (deadlines.seconds_left() or 0.0)
        deadlines.end(self._deadline)
        if seconds > SHORT_SHARE * timeout:
            add_wait(self._breaker.server, seconds)
        return seconds > SLOW_SHARE * timeout and not is_in_background()
