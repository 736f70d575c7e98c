from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import django
import pytest

if "HITCOUNT_TEST_BROWSER" in os.environ:
    from playwright.sync_api import Browser, BrowserContext, Page

    from tests.browser.chromium import ChromiumMissing, log_in, open_context, run_chromium
    from tests.browser.demo_site import DemoSite, run_demo
else:
    collect_ignore_glob = ["*"]  # The tox environment "browser" runs them.


OLDEST_DJANGO = (6, 1)
"""The admin's own pages of older ones have inline styles, and form fields without labels."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if django.VERSION < OLDEST_DJANGO:
        pytest.exit(f"Use Python 3.12 or later: Django {django.get_version()} is too old.", 1)
    try:
        with run_chromium() as browser:
            yield browser
    except ChromiumMissing as missing:
        pytest.exit(str(missing), 1)


@pytest.fixture(scope="session")
def site(browser) -> Iterator[DemoSite]:
    """The example site. Tests look at it, count hits, and may add a correction."""
    with run_demo() as site:
        yield site


@pytest.fixture(scope="session")
def session_of_admin(browser, site) -> dict[str, object]:
    """The cookies of the admin user."""
    context = open_context(browser, site)
    log_in(context, site)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def messages() -> Iterator[list[str]]:
    """What the browser complains about. The test fails if there is anything."""
    messages: list[str] = []
    yield messages
    assert messages == []


@pytest.fixture
def new_context(browser, site, session_of_admin, messages) -> Iterator[Callable[..., object]]:
    """Open a window in which the admin user is logged in; see open_context()."""
    contexts: list[BrowserContext] = []

    def new_context(**options: object) -> BrowserContext:
        context = open_context(browser, site, **options)
        context.add_cookies(session_of_admin["cookies"])
        context.on("console", lambda message: note(message.type, message.text))
        context.on("weberror", lambda error: note("error", str(error.error)))
        context.on("response", lambda response: note_missing(response.status, response.url))
        contexts.append(context)
        return context

    def note(kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            messages.append(text)

    def note_missing(status: int, url: str) -> None:
        if status >= 400:
            messages.append(f"{status} {url}")

    yield new_context
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_context) -> Page:
    """A page of an ordinary window: light and wide."""
    return new_context().new_page()
