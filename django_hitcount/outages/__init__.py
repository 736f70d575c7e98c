"""
Servers that are away, slow or locked: stop calling them, so that pages do not wait for them.

Beside this are how long a page waits (waits), and what Redis missed meanwhile (missed_records).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextvars import Token
from functools import cache
from types import TracebackType

from django.utils.asyncio import async_unsafe

from django_hitcount.db.transactions import is_conflict, is_server_away
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.waits import (
    WAITS_ATTRIBUTE,
    add_wait,
    current_page,
    deadline,
    is_in_background,
)

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

PAGE_READ_SECONDS = 1.0
"""How long a page may wait for reads of the tables: it leaves a number out rather than wait. The
database does not enforce it."""

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
        self.is_open = False
        """Whether the server failed or was slow, and no probe has succeeded since."""

        self.slow_calls = 0
        """How many slow calls there were in a row."""

        self._lock = threading.Lock()
        self._pause = 0.0
        self._paused_until = 0.0

    def guard(self) -> GuardedCall:
        """
        Return a context manager to make a call in. Its value is True if the call is the probe.

        Entering it raises BufferUnavailable during a pause, or if the page has already waited for
        the server. So a server that is away costs a page nothing. Raises SynchronousOnlyOperation
        in an async context.
        """
        return GuardedCall(self)

    def start_probe(self) -> bool:
        """
        Return whether a call that starts now is the probe. Raise BufferUnavailable if paused.

        Only needed if the breaker is open.
        """
        with self._lock:
            if not self.is_open:
                return False
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
                self.is_open = True
                self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), longest)
                # Processes that failed at the same time do not probe at the same time.
                self._paused_until = time.monotonic() + self._pause * random.uniform(0.5, 1.0)
        if is_first:
            message = "%s has failed or is too slow, and is not called for a while: %s"
            logger.warning(message, self.server, error)

    def close(self) -> None:
        """End the pause: the probe was answered fast."""
        with self._lock:
            self.is_open = False
            self._pause = 0.0
            self._paused_until = 0.0
        logger.warning("%s answers again", self.server)


class GuardedCall:
    """
    A call to a server that a breaker guards.

    It is a class because each hit makes a call, and a generator would take three times as long.
    """

    __slots__ = ("_began_at", "_breaker", "_is_probe", "_seconds", "_token")

    _token: Token[float | None]

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    @async_unsafe(ASYNC_MESSAGE)
    def __enter__(self) -> bool:
        breaker, began_at = self._breaker, time.monotonic()
        seconds, page = breaker.timeout_seconds, current_page.get()
        waits = page.__dict__.get(WAITS_ATTRIBUTE) if page else None
        if seconds is not None and waits:
            waited = waits.get(breaker.server, 0.0)
            if waited > SLOW_SHARE * seconds:
                raise BufferUnavailable(f"This page has already waited for {breaker.server}.")
            seconds -= waited
        self._is_probe = breaker.is_open and breaker.start_probe()
        self._began_at, self._seconds = began_at, seconds
        if seconds is not None:  # As a Deadline does, which would take longer.
            moment, outer = began_at + seconds, deadline.get()
            self._token = deadline.set(moment if outer is None or moment < outer else outer)
        return self._is_probe

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        breaker, is_slow = self._breaker, False
        if self._seconds is not None and breaker.timeout_seconds is not None:
            left = (deadline.get() or 0.0) - time.monotonic()
            deadline.reset(self._token)
            # Without the time for which the deadline was paused.
            waited = self._seconds - max(left, 0.0)
            if waited > SHORT_SHARE * breaker.timeout_seconds:
                add_wait(breaker.server, waited)
            if waited > SLOW_SHARE * breaker.timeout_seconds:
                is_slow = not is_in_background.get()
        if error is None and not is_slow and not self._is_probe:
            if breaker.slow_calls:
                breaker.slow_calls = 0
            return
        self._report(error, is_slow)

    def _report(self, error: BaseException | None, is_slow: bool) -> None:
        breaker, seconds = self._breaker, time.monotonic() - self._began_at
        if error and not isinstance(error, Exception):
            return  # Somebody ended the call. That says nothing about the server.
        failure = error if error and breaker.is_failure(error) else None
        if is_slow and not failure:
            breaker.slow_calls += 1
            if breaker.slow_calls < SLOW_CALLS and not self._is_probe:
                return
            failure = BufferUnavailable("it answers slowly")
        if failure:
            breaker.report_failure(failure, self._is_probe, seconds=seconds)
            return
        breaker.slow_calls = 0
        if self._is_probe:
            breaker.close()


@cache
def page_read_breaker() -> Breaker:
    """
    Return the breaker that guards the reads of pages.

    Writes have another breaker: tables may be locked or slow for reads only, or for writes only.
    A lock is a failure, too: reads only wait for locks of whole tables, which stop all other reads.
    """
    return Breaker(
        "The database of totals",
        timeout_seconds=PAGE_READ_SECONDS,
        is_failure=lambda error: is_server_away(error) or is_conflict(error),
    )


@cache
def ranking_breaker() -> Breaker:
    """
    Return the breaker that guards the rankings of pages.

    A ranking may take longer than other reads of a page, which must not be left out for that.
    """
    return Breaker("The database of rankings")
