"""A page from a cache counts when somebody sees it, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import adblock
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chromium import USER_AGENT, open_context

CACHED = "/-/articles/2/cached"

LISTS = Path("/usr/share/chromium/extensions/ublock-origin/assets/thirdparties/easylist")
"""Of Debian's package webext-ublock-origin-chromium."""

BLOCKED_NAMES = ("/hitcount/", "/hit_count?id=1", "/static/beacon.js", "/count.gif?id=1")

numbers = count(1)


class Sent:
    """What the pages of a window have sent."""

    def __init__(self, page: Page) -> None:
        self.bodies: list[dict[str, object]] = []
        page.on("request", self._add)

    def _add(self, request) -> None:
        if request.method == "POST" and request.url.endswith("/seen/"):
            self.bodies.append(json.loads(request.post_data))

    @property
    def hits(self) -> int:
        """How many tokens were sent to be counted, in requests with an id of their own."""
        return sum(len(hit) for hit in {body["id"]: body["hit"] for body in self.bodies}.values())


@pytest.fixture
def open_page(browser, site) -> Iterator:
    """Open a window of a new visitor. Nothing may appear in its console, if it is not told so."""
    contexts, complaints = [], []

    def open_page(script: str = "", *, may_complain: bool = False, **options) -> Page:
        context = browser.new_context(
            base_url=site.address, user_agent=f"{USER_AGENT} Visitor/{next(numbers)}", **options
        )
        contexts.append(context)
        page = context.new_page()
        if script:
            page.add_init_script(script)
        if not may_complain:
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def read_hits(browser, site) -> Iterator:
    """Read the hits of the article, as its cached page does, without a hit."""
    context = open_context(browser, site)
    page = context.new_page()
    page.goto("/")
    html = page.request.get(CACHED).text()
    token = html.split('data-hits="')[1].split('"')[0]

    def read_hits() -> int:
        body = json.dumps({"id": f"reading-{next(numbers)}", "hit": [], "show": [token]})
        script = (
            "async (body) => (await (await fetch('/seen/', {method: 'POST', body})).json()).numbers"
        )
        return page.evaluate(script, body)[token]

    yield read_hits
    context.close()


def wait_for_numbers(page: Page) -> None:
    expect(page.locator("[data-hits]")).not_to_have_text("-")


def visit(page: Page) -> Sent:
    sent = Sent(page)
    page.goto(CACHED)
    wait_for_numbers(page)
    return sent


def test_three_visits_of_one_cached_page_count_three_times(open_page, read_hits):
    before = read_hits()
    sources = set()
    for _ in range(3):
        page = open_page()
        visit(page)
        sources.add(page.request.get(CACHED).text())

    assert len(sources) == 1
    assert read_hits() == before + 3
    shown = page.locator("[data-hits]").inner_text()
    assert shown == page.evaluate(
        "number => new Intl.NumberFormat('en').format(number)", before + 3
    )
    assert int(page.locator("[data-visitors]").inner_text().replace(",", "")) >= 3


def test_visit_from_the_http_cache_and_back_and_forward_count_again(open_page):
    page = open_page()
    sent = visit(page)
    page.goto("/")
    page.go_back()
    wait_for_numbers(page)
    page.goto("/")
    visit(page)

    assert sent.hits == 3


def test_page_that_the_browser_kept_counts_again(open_page):
    page = open_page()
    sent = visit(page)
    with page.expect_request("**/seen/"):
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")

    assert sent.hits == 2


HIDDEN = """Object.defineProperty(document, 'visibilityState', {
    get: () => window.isSeen ? 'visible' : 'hidden'
});"""

PRERENDERED = "Object.defineProperty(document, 'prerendering', {get: () => !window.isSeen});"


@pytest.mark.parametrize(
    ("script", "seen"),
    [(HIDDEN, "visibilitychange"), (PRERENDERED, "prerenderingchange")],
    ids=["hidden", "prerendered"],
)
def test_page_counts_once_when_it_is_seen(open_page, script, seen):
    page = open_page(script)
    sent = Sent(page)
    page.goto(CACHED, wait_until="networkidle")
    assert sent.bodies == []

    page.evaluate("window.isSeen = true")
    for event in (seen, "visibilitychange", "prerenderingchange"):
        page.evaluate("event => document.dispatchEvent(new Event(event))", event)
    wait_for_numbers(page)

    assert sent.hits == 1


def test_script_twice_and_a_changed_address_send_nothing_more(open_page):
    page = open_page()
    sent = visit(page)
    page.add_script_tag(url="/static/django_hitcount/seen.js")
    page.evaluate("history.replaceState({}, '', '?page=2')")
    page.evaluate("history.pushState({}, '', '?page=3')")
    page.evaluate("hitcount.count()")
    page.wait_for_load_state("networkidle")

    assert len(sent.bodies) == 1
    assert sent.hits == 1


def test_new_element_counts_but_not_in_a_preview_of_turbo(open_page):
    page = open_page()
    sent = visit(page)
    add = "document.body.append(document.querySelector('[data-hit]').cloneNode())"
    page.evaluate("document.documentElement.setAttribute('data-turbo-preview', '')")
    page.evaluate(f"{add}; hitcount.count()")
    page.wait_for_load_state("networkidle")
    assert sent.hits == 1

    page.evaluate("document.documentElement.removeAttribute('data-turbo-preview')")
    with page.expect_request("**/seen/"):
        page.evaluate("hitcount.count()")
    assert sent.hits == 2


def test_many_objects_are_one_request(open_page):
    page = open_page()
    sent = visit(page)
    with page.expect_request("**/seen/"):
        page.evaluate(
            "for (let n = 0; n < 60; n++) {"
            "  const one = document.createElement('b'); one.dataset.hits = 'token-' + n;"
            "  document.body.append(one); } hitcount.count()"
        )
    page.wait_for_load_state("networkidle")

    assert [len(body["show"]) for body in sent.bodies] == [2, 60]


def test_answer_that_is_lost_counts_once(open_page, read_hits):
    before = read_hits()
    page = open_page(may_complain=True)
    sent = Sent(page)

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/seen/", lose_the_answer, times=1)
    page.goto(CACHED)
    wait_for_numbers(page)

    assert len(sent.bodies) == 2
    assert sent.hits == 1
    assert read_hits() == before + 1


def test_hit_that_was_made_offline_is_sent_later(open_page):
    page = open_page(may_complain=True)
    sent = visit(page)
    page.context.set_offline(True)
    add = "document.body.append(document.querySelector('[data-hit]').cloneNode())"
    with page.expect_event("requestfailed"):
        page.evaluate(f"{add}; hitcount.count()")
    with page.expect_response("**/seen/") as answer:
        page.context.set_offline(False)

    assert answer.value.ok
    assert sent.hits == 2


def test_image_counts_without_javascript(open_page, read_hits):
    before = read_hits()
    page = open_page(java_script_enabled=False)
    with page.expect_response("**/seen/*.gif") as image:
        page.goto(CACHED)

    assert image.value.ok
    assert read_hits() == before + 1


def test_page_in_a_frame_sends_nothing(open_page):
    page = open_page(may_complain=True)
    sent = Sent(page)
    page.route("**/framing", lambda route: route.fulfill(body=f'<iframe src="{CACHED}"></iframe>'))
    page.goto("/framing", wait_until="networkidle")

    assert sent.bodies == []


def test_public_lists_of_trackers_do_not_block_our_names(open_page, site):
    """So that no accident of a name loses hits. The engine is seen to block other names."""
    filters = adblock.FilterSet()
    for name in ("easyprivacy.txt", "easylist.txt"):
        filters.add_filter_list((LISTS / name).read_text())
    engine = adblock.Engine(filters)
    page = open_page()
    html = page.request.get(CACHED).text()
    image = html.split('<noscript><img src="')[1].split('"')[0]
    ours = {
        "/static/django_hitcount/seen.js": "script",
        "/static/django_hitcount/seen.0123456789ab.js": "script",
        "/seen/": "xmlhttprequest",
        image: "image",
    }

    def is_blocked(path: str, kind: str) -> bool:
        address = f"https://news.example{path}"
        return engine.check_network_urls(address, "https://news.example/tea/", kind).matched

    assert not [path for path, kind in ours.items() if is_blocked(path, kind)]
    assert all(is_blocked(path, "image") or is_blocked(path, "script") for path in BLOCKED_NAMES)
