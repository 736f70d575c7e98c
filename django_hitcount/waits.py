"""What a page has waited for servers already, so that it does not wait once for each tag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from django.http import HttpRequest

Waits = dict[str, float]
"""Seconds by server."""

_ON_REQUEST = "_hitcount_waits"

_page: ContextVar[Waits | None] = ContextVar("hitcount_page", default=None)

_has_time: ContextVar[bool] = ContextVar("hitcount_has_time", default=False)


class OnPage:
    """
    What is done within is part of the page that ``request`` asks for.

    Without a request, it stays part of what it was part of.
    """

    __slots__ = ("_page", "_token")
    _token: Token[Waits | None]

    def __init__(self, request: HttpRequest | None) -> None:
        self._page = _page.get() if request is None else _of_request(request)

    def __enter__(self) -> None:
        self._token = _page.set(self._page)

    def __exit__(self, *error: object) -> None:
        _page.reset(self._token)


def _of_request(request: HttpRequest) -> Waits:
    waits: Waits = request.__dict__.setdefault(_ON_REQUEST, {})
    return waits


def keep_on_page(work: Callable[[], None]) -> Callable[[], None]:
    """The same work, part of the page of now whenever it is done."""
    page = _page.get()
    if page is None:
        return work

    def work_on_page() -> None:
        token = _page.set(page)
        try:
            work()
        finally:
            _page.reset(token)

    return work_on_page


def waited_for(server: str) -> float:
    """Seconds that the page of now has waited for a server; 0 if this is no page."""
    page = _page.get()
    return page.get(server, 0.0) if page else 0.0


def add_wait(server: str, seconds: float) -> None:
    """Take note that the page of now, if this is one, has waited for a server."""
    page = _page.get()
    if page is not None:
        page[server] = page.get(server, 0.0) + seconds


def has_time() -> bool:
    """Whether nobody waits for what is done now; see unhurried()."""
    return _has_time.get()


@contextmanager
def unhurried() -> Iterator[None]:
    """Nobody waits for what is done within: a server may take its time, again and again."""
    token = _has_time.set(True)
    try:
        yield
    finally:
        _has_time.reset(token)
