"""What a page has waited for servers already, so that it does not wait once for each tag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from django.http import HttpRequest

_ON_REQUEST = "_hitcount_waits"

_page: ContextVar[HttpRequest | None] = ContextVar("hitcount_page", default=None)

_has_time: ContextVar[bool] = ContextVar("hitcount_has_time", default=False)


class OnPage:
    """
    What is done within is part of the page that ``request`` asks for.

    Without a request, it stays part of what it was part of.
    """

    __slots__ = ("_request", "_token")
    _token: Token[HttpRequest | None]

    def __init__(self, request: HttpRequest | None) -> None:
        self._request = request

    def __enter__(self) -> None:
        self._token = _page.set(_page.get() if self._request is None else self._request)

    def __exit__(self, *error: object) -> None:
        _page.reset(self._token)


def keep_on_page(work: Callable[[], object]) -> Callable[[], object]:
    """The same work, part of the page of now whenever it is done."""
    page = _page.get()

    def work_on_page() -> object:
        with OnPage(page):
            return work()

    return work_on_page


def waited_for(server: str) -> float:
    """Seconds that the page of now has waited for a server; 0 if this is no page."""
    page = _page.get()
    waits = page and page.__dict__.get(_ON_REQUEST)
    return waits.get(server, 0.0) if waits else 0.0


def add_wait(server: str, seconds: float) -> None:
    """Take note that the page of now, if this is one, has waited for a server."""
    page = _page.get()
    if page is not None:
        waits = page.__dict__.setdefault(_ON_REQUEST, {})
        waits[server] = waits.get(server, 0.0) + seconds


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
