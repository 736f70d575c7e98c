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
        self._token = begin(self._seconds)

    def __exit__(self, *error: object) -> None:
        end(self._token)


def begin(seconds: float) -> Token[float | None]:
    """As Deadline, for where a context manager would cost too much."""
    moment, outer = time.monotonic() + seconds, _deadline.get()
    return _deadline.set(moment if outer is None or moment < outer else outer)


def end(token: Token[float | None]) -> None:
    """End the deadline that begin() gave ``token`` for."""
    _deadline.reset(token)


def has_deadline() -> bool:
    return _deadline.get() is not None


def seconds_left() -> float | None:
    """Seconds until the deadline, 0 once it is over, or None if there is none."""
    moment = _deadline.get()
    if moment is None:
        return None
    left = moment - time.monotonic()
    return left if left > 0 else 0.0


@contextmanager
def elsewhere() -> Iterator[None]:
    """What is waited for within is no wait for Redis: the deadline comes that much later."""
    began_at = time.monotonic()
    try:
        yield
    finally:
        moment = _deadline.get()
        if moment is not None:
            _deadline.set(moment + time.monotonic() - began_at)
