"""
How long a call to Redis may wait, and what a page has already waited for, so that its next tags do
not wait for the same again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from django.http import HttpRequest

WAITS_ATTRIBUTE = "_hitcount_waits"
"""Attribute of the request: how many seconds the page has waited, by cause."""

current_page: ContextVar[HttpRequest | None] = ContextVar("hitcount_page", default=None)
"""The request whose page the code is a part of."""

is_in_background: ContextVar[bool] = ContextVar("hitcount_in_background", default=False)
"""Whether the code runs within in_background()."""


class CurrentPage:
    """
    A context manager that adds all waits of its block to the page of ``request``.

    Without a request, adds them to the page that is current already, if there is one.
    """

    __slots__ = ("_request", "_token")
    _token: Token[HttpRequest | None]

    def __init__(self, request: HttpRequest | None) -> None:
        self._request = request

    def __enter__(self) -> None:
        page = current_page.get() if self._request is None else self._request
        self._token = current_page.set(page)

    def __exit__(self, *error: object) -> None:
        current_page.reset(self._token)


def seconds_waited(cause: str) -> float:
    """Return how long the current page has waited for ``cause``: a server, or locks."""
    page = current_page.get()
    waits = page and page.__dict__.get(WAITS_ATTRIBUTE)
    return waits.get(cause, 0.0) if waits else 0.0


def add_wait(cause: str, seconds: float) -> None:
    """Add ``seconds`` to the waits of the current page for ``cause``, if there is a page."""
    page = current_page.get()
    if page is not None:
        waits = page.__dict__.setdefault(WAITS_ATTRIBUTE, {})
        waits[cause] = waits.get(cause, 0.0) + seconds


@contextmanager
def in_background() -> Iterator[None]:
    """Run the block as background work. No page waits for it, so slow calls are not failures."""
    token = is_in_background.set(True)
    try:
        yield
    finally:
        is_in_background.reset(token)


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
