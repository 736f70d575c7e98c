"""How long what is done now may wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

_deadline: ContextVar[float | None] = ContextVar("hitcount_deadline", default=None)


class Deadline:
    """
    Ends all waits for Redis within so many seconds from now.

    Within another deadline, the earlier one holds.
    """

    __slots__ = ("_seconds", "_token")
    _token: Token[float | None]

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        end, outer = time.monotonic() + self._seconds, _deadline.get()
        self._token = _deadline.set(end if outer is None else min(end, outer))

    def seconds_over(self) -> float:
        """How much of its time is over, if no outer one holds; all of it at most."""
        return self._seconds - (seconds_left() or 0.0)

    def __exit__(self, *error: object) -> None:
        _deadline.reset(self._token)


def seconds_left() -> float | None:
    """Seconds until the deadline, 0 once it is over, or None if there is none."""
    end = _deadline.get()
    if end is None:
        return None
    left = end - time.monotonic()
    return left if left > 0 else 0.0


@contextmanager
def elsewhere() -> Iterator[None]:
    """What is waited for within is no wait for Redis: the deadline comes that much later."""
    began_at = time.monotonic()
    try:
        yield
    finally:
        end = _deadline.get()
        if end is not None:
            _deadline.set(end + time.monotonic() - began_at)
