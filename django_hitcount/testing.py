"""
Helpers for the tests of a project::

    from django.test import TestCase
    from django_hitcount.testing import BrowserClient, assert_hits

    class ArticleTests(TestCase):
        client_class = BrowserClient

        def test_page_counts_a_view(self):
            self.client.get(article.get_absolute_url())
            assert_hits(article, 1)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from html import unescape
from typing import Any
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.db.models import Model
from django.test import (
    AsyncClient,
    AsyncRequestFactory,
    Client,
    RequestFactory,
    TestCase,
    override_settings,
)

from django_hitcount import conf
from django_hitcount.beacon import beacon_url
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.savepoints import DelayedWork
from django_hitcount.reading import get_hits
from django_hitcount.recording import _record_now
from django_hitcount.status import get_refused_hits
from django_hitcount.twins import async_twin

__all__ = [
    "AsyncBrowserClient",
    "AsyncBrowserRequestFactory",
    "BrowserClient",
    "BrowserRequestFactory",
    "aassert_hits",
    "assert_hits",
    "override_hitcount",
]

USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def _commit_requests() -> ExitStack:
    """
    Let what a request leaves to the COMMIT be done at the end of the block, in a TestCase.

    A TestCase wraps each test in a transaction that it rolls back. Does nothing for a database in
    which the test has begun a transaction itself, or has none open.
    """
    stack = ExitStack()
    for connection in connections.all(initialized_only=True):
        blocks: Any = connection.atomic_blocks
        if blocks and all(block._from_testcase for block in blocks):
            stack.enter_context(
                TestCase.captureOnCommitCallbacks(using=connection.alias, execute=True)
            )
    return stack


class _Browser:
    """Sends the User-Agent of a browser, unless the test gives another one."""

    def generic(self, *args: Any, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
        """See RequestFactory.generic(), which makes all requests."""
        # As Django reads the names of headers.
        given = {name.lower().replace("_", "-"): value for name, value in (headers or {}).items()}
        others = {**vars(self)["defaults"], **more}
        # An AsyncRequestFactory takes headers by their own names, too, and joins two of one name.
        if "user-agent" not in {name.lower().replace("_", "-") for name in others}:
            given.setdefault("user-agent", others.get("HTTP_USER_AGENT", USER_AGENT))
        return super().generic(*args, headers=given, **more)  # type: ignore[misc]


class _AsyncBrowser(_Browser):
    """Also takes REMOTE_ADDR, as requests that are not asynchronous do."""

    def _base_scope(self, **request: Any) -> dict[str, Any]:
        scope: dict[str, Any] = super()._base_scope(**request)  # type: ignore[misc]
        headers = dict(scope["headers"])
        if address := headers.get(b"remote-addr") or headers.get(b"remote_addr"):
            scope["client"] = [address.decode(), 0]
        return scope


class BrowserRequestFactory(_Browser, RequestFactory):
    """Django's RequestFactory. Its requests come from a browser, so that their hits count."""


class AsyncBrowserRequestFactory(_AsyncBrowser, AsyncRequestFactory):
    """See BrowserRequestFactory."""


class BrowserClient(_Browser, Client):
    """
    Django's test client as a browser. Its hits count, in a TestCase, too::

        class ArticleTests(TestCase):
            client_class = BrowserClient

            def test_bots_do_not_count(self):
                self.client.get("/articles/1/", headers={"user-agent": "curl/8.5.0"})

    After a request in a TestCase, it runs all that waits for the COMMIT of this request. Requests
    from another address (``REMOTE_ADDR="203.0.113.7"``) are of another visitor.
    """

    def request(self, **request: Any) -> Any:
        """See Client.request()."""
        with _commit_requests():
            return super().request(**request)

    def send_beacon(self, response: Any, **more: Any) -> Any:
        """
        Send what the script of ``{% hit_beacon %}`` sends for a page, and return the answer.

        Raises AssertionError if the page has nothing to count or to show.
        """
        path, body = _build_beacon(response)
        return self.post(path, body, content_type="text/plain", **more)


class AsyncBrowserClient(_AsyncBrowser, AsyncClient):
    """See BrowserClient. In a TestCase: ``async_client_class = AsyncBrowserClient``."""

    async def request(self, **request: Any) -> Any:
        """See AsyncClient.request()."""
        stack = await sync_to_async(_commit_requests)()
        try:
            return await super().request(**request)
        finally:
            await sync_to_async(stack.close)()

    async def send_beacon(self, response: Any, **more: Any) -> Any:
        """See BrowserClient.send_beacon()."""
        path, body = _build_beacon(response)
        return await self.post(path, body, content_type="text/plain", **more)


def _build_beacon(response: Any) -> tuple[str, str]:
    """Return the address that the script of a page sends to, and what it sends."""
    found: dict[str, list[str]] = {"hit": [], "hits": [], "visitors": []}
    for name, token in re.findall(r'\bdata-(\w+)="([^"]*)"', response.content.decode()):
        found.get(name, []).append(unescape(token))
    if not any(found.values()):
        raise AssertionError(
            "The page has nothing to count or to show: no data-hit, data-hits or data-visitors."
        )
    shown = [*found["hits"], *found["visitors"]]
    body = {"id": uuid4().hex, "hit": [*dict.fromkeys(found["hit"])], "show": [*{*shown}]}
    return beacon_url("count_views"), json.dumps(body)


class override_hitcount(override_settings):  # noqa: N801  # As in Django.
    """
    Override keys of HITCOUNT, and leave the others: a context manager, and a decorator of tests and
    of classes of tests::

        @override_hitcount(COUNTERS={"views": {"repeat": "daily"}})
        def test_reload(self): ...

    Raises ImproperlyConfigured for an unknown key or a wrong value.
    """

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self._changes = changes

    def enable(self) -> None:
        """See override_settings.enable()."""
        self._change(getattr(settings, "HITCOUNT", {}))
        super().enable()

    def save_options(self, test_func: Any) -> None:
        """See override_settings.save_options(). Called for a class of tests."""
        earlier = test_func._overridden_settings or {}
        self._change(earlier.get("HITCOUNT", getattr(settings, "HITCOUNT", {})))
        super().save_options(test_func)

    def _change(self, earlier: dict[str, Any]) -> None:
        self.options = {"HITCOUNT": {**earlier, **self._changes}}
        with override_settings(**self.options):
            conf.get_config()  # Raises ImproperlyConfigured if a value is wrong.


def assert_hits(obj: Model, hits: int, *, counter: str = DEFAULT_COUNTER, **days: Any) -> None:
    """
    Assert that an object has so many hits, and say why it may have others.

    The arguments are those of get_hits(). Raises AssertionError.
    """
    found = get_hits(obj, counter=counter, **days)
    if found != hits:
        message = f"{obj!r} has {found} hits of {counter!r}, and should have {hits}."
        if found > hits and conf.get_config().redis:
            message += (
                " REDIS is set: hits in Redis survive the rollback of a TestCase, and an object of "
                "another test with the same key has them. Use @override_hitcount(REDIS=None)."
            )
        waiting = _find_waiting(counter_key(obj, counter=counter))
        raise AssertionError(message + _explain(waiting, is_too_few=found < hits))


def _find_waiting(key: CounterKey) -> list[NewHits]:
    """Return the hits that wait for a COMMIT."""
    callbacks = [
        callback
        for connection in connections.all(initialized_only=True)
        for _, callback, *_ in connection.run_on_commit
    ]
    delayed = dict.fromkeys(getattr(callback, "__wrapped__", None) for callback in callbacks)
    works = [each.work for each in delayed if isinstance(each, DelayedWork) and not each.is_done]
    return [
        hit
        for work in works
        if isinstance(work, partial) and work.func is _record_now
        for hit in work.args[1]
        if hit.key == key
    ]


def _explain(waiting: list[NewHits], *, is_too_few: bool) -> str:
    """Say why hits of this test may not be counted."""
    refused = Counter(hit.refusal for hit in waiting if hit.refusal)
    for row in get_refused_hits(days=1):
        refused[row.refusal] += row.hits
    reasons = ", ".join(f"{hits} x {refusal}" for refusal, hits in refused.items())
    why = f" Refused on {day_of()}: {reasons}." if reasons else ""
    if "bot" in refused:
        why += " Django's Client and RequestFactory count as bots: use BrowserClient."
    if is_too_few and not all(hit.refusal for hit in waiting):
        why += (
            " Hits may wait for a COMMIT: use BrowserClient, or "
            "TestCase.captureOnCommitCallbacks(execute=True), or in an async test "
            "TransactionTestCase."
        )
    return why


aassert_hits = async_twin(assert_hits)
"""See assert_hits()."""
