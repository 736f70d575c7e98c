"""Deadlines for calls to Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

_deadline: ContextVar[float | None] = ContextVar("hitcount_deadline", default=None)


class Deadline:
    """
    A context manager that ends all waits for Redis after ``seconds``.

    If deadlines are nested, the earliest one applies.
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
    """Begin a Deadline without its context manager, which takes longer. Pass the token to end()."""
    moment, outer = time.monotonic() + seconds, _deadline.get()
    return _deadline.set(moment if outer is None or moment < outer else outer)


def end(token: Token[float | None]) -> float:
    """End the deadline for which begin() returned ``token``. Return the seconds that were left."""
    moment = _deadline.get()
    _deadline.reset(token)
    return moment - time.monotonic() if moment else 0.0


def has_deadline() -> bool:
    """Return whether a deadline applies now."""
    return _deadline.get() is not None


def seconds_left() -> float | None:
    """Return the seconds until the deadline: 0 if it is over, None if there is no deadline."""
    moment = _deadline.get()
    if moment is None:
        return None
    left = moment - time.monotonic()
    return left if left > 0 else 0.0


@contextmanager
def pause_deadline() -> Iterator[None]:
    """Postpone the deadline by the time that the block takes. For work that does not use Redis."""
    began_at = time.monotonic()
    try:
        yield
    finally:
        moment = _deadline.get()
        if moment is not None:
            _deadline.set(moment + time.monotonic() - began_at)
