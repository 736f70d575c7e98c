"""What a page has already waited for, so that its next tags do not wait for the same again."""

from __future__ import annotations

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
