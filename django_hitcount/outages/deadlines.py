"""Deadlines for calls to Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

deadline: ContextVar[float | None] = ContextVar("hitcount_deadline", default=None)
"""When all waits for Redis end, by time.monotonic(). None: each only has its own timeout."""


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
        moment, outer = time.monotonic() + self._seconds, deadline.get()
        self._token = deadline.set(moment if outer is None or moment < outer else outer)

    def __exit__(self, *error: object) -> None:
        deadline.reset(self._token)


def seconds_left() -> float | None:
    """Return the seconds until the deadline: 0 if it is over, None if there is no deadline."""
    moment = deadline.get()
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
        moment = deadline.get()
        if moment is not None:
            deadline.set(moment + time.monotonic() - began_at)
