"""Each page in a real browser: whole under a strict policy, on narrow screens, by keyboard."""

from __future__ import annotations

import pytest

from tests.browser.accessibility import violations
from tests.browser.focus import tab_through
from tests.browser.pages import PAGES

POLICY = "default-src 'self'; style-src 'self'; script-src 'self'"
NARROW = 400


@pytest.fixture(params=PAGES.values(), ids=PAGES)
def path(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def is_dark(request):
    return request.param


def test_page_is_whole_and_accessible(path, is_dark, new_context):
    page = new_context(is_dark=is_dark).new_page()
    response = page.goto(path)

    assert response.headers["content-security-policy"] == POLICY
    assert violations(page) == []


def test_browsers_that_ask_for_an_icon_find_one(page):
    assert page.request.get("/favicon.ico").ok


def test_narrow_page_does_not_scroll_sideways(path, new_context):
    page = new_context(width=NARROW).new_page()
    page.goto(path)

    assert page.evaluate("document.documentElement.scrollWidth") == NARROW


def test_tab_key_reaches_each_control_and_shows_where_it_is(path, page):
    page.goto(path)
    walk = tab_through(page)

    assert walk.missed == []
    assert walk.unmarked == []
