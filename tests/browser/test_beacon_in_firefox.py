"""A page from a cache counts when somebody sees it, in Firefox, too: exact counts each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.browser.firefox import Firefox, FirefoxMissing, run_firefox
from tests.browser.front import HANGS_SECONDS, Front, ask, run_front
from tests.browsers import BROWSER

CACHED = "/-/articles/3/cached"
COPY_THE_TOKEN = "document.body.append(document.querySelector('[data-hit]').cloneNode());"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory) -> Iterator[Firefox]:
    try:
        with run_firefox(tmp_path_factory.mktemp("profile")) as firefox:
            yield firefox
    except FirefoxMissing as missing:
        pytest.exit(str(missing), 1)


@pytest.fixture
def front(site) -> Iterator[Front]:
    """The way to the site, with an address of its own, so that nothing is in the HTTP cache yet."""
    with run_front(site.address) as front:
        yield front


@pytest.fixture
def complaints(firefox, front) -> Iterator[None]:
    """Nothing may appear in the console. The site sends ``default-src 'self'``."""
    yield
    assert firefox.complaints(front.address) == []


def get_page(front: Front) -> str:
    """The page as the cache has it."""
    return ask(front.site, "GET", CACHED, b"", BROWSER)[2].decode()


def read_hits(front: Front) -> int:
    """Read the hits of the article, as its cached page does, without a hit."""
    token = get_page(front).split('data-hits="')[1].split('"')[0]
    body = json.dumps({"id": "only-reading", "hit": [], "show": [token]}).encode()
    headers = {**BROWSER, "Sec-Fetch-Site": "same-origin"}
    return json.loads(ask(front.site, "POST", "/seen/", body, headers)[2])["numbers"][token]


def wait_for_numbers(firefox: Firefox) -> int:
    """Wait until the page shows the answer, and return its hits."""
    ends_at = time.monotonic() + HANGS_SECONDS
    while (text := shown_hits(firefox)) == "-":
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    return int(text.replace(",", ""))


def shown_hits(firefox: Firefox) -> str:
    return firefox.run("return document.querySelector('[data-hits]').textContent")


def visit(firefox: Firefox, front: Front) -> int:
    firefox.go(front.address + CACHED)
    return wait_for_numbers(firefox)


@pytest.mark.usefixtures("complaints")
def test_three_visits_of_one_cached_page_count_three_times(firefox, front):
    before, sources, shown = read_hits(front), set(), []
    for front.visitor in (1, 2, 3):
        shown.append(visit(firefox, front))
        sources.add(get_page(front))

    assert len(sources) == 1
    assert shown == [before + 1, before + 2, before + 3]
    assert front.hits == 3


@pytest.mark.usefixtures("complaints")
def test_back_and_forward_count_again_each(firefox, front):
    visit(firefox, front)
    firefox.go(front.address + "/")
    firefox.back()
    front.wait_for("/seen/", 2)
    firefox.send("WebDriver:Forward")
    firefox.back()
    front.wait_for("/seen/", 3)

    assert front.hits == 3
    assert front.paths.count(CACHED) == 1


@pytest.mark.usefixtures("complaints")
def test_background_tab_counts_when_it_is_seen(firefox, front):
    first, tab = firefox.tab(), firefox.new_tab()
    firefox.switch(tab, focus=False)
    firefox.go(front.address + CACHED)
    assert firefox.run("return [document.visibilityState, document.readyState]") == [
        "hidden",
        "complete",
    ]
    assert front.bodies == []

    firefox.switch(tab)
    wait_for_numbers(firefox)
    assert front.hits == 1

    firefox.send("WebDriver:CloseWindow")
    firefox.switch(first)


@pytest.mark.usefixtures("complaints")
def test_script_twice_and_a_changed_address_send_nothing_more(firefox, front):
    visit(firefox, front)
    firefox.run("history.replaceState({}, '', '?page=2'); history.pushState({}, '', '?page=3')")
    firefox.send(
        "WebDriver:ExecuteAsyncScript",
        {
            "script": "const again = document.createElement('script');"
            "again.src = '/static/django_hitcount/seen.js'; again.onload = arguments[0];"
            "document.body.append(again)",
            "args": [],
        },
    )
    firefox.run("hitcount.count()")
    firefox.run(f"{COPY_THE_TOKEN} hitcount.count()")  # So that there is a request to wait for.
    front.wait_for("/seen/", 2)

    assert [len(body["hit"]) for body in front.bodies] == [1, 1]


def test_answer_that_is_lost_counts_once(firefox, front):
    before, front.answers_to_lose = read_hits(front), 1
    shown = visit(firefox, front)

    assert len(front.bodies) == 2
    assert front.hits == 1
    assert read_hits(front) == shown == before + 1


def test_hit_that_was_made_offline_is_sent_later(firefox, front):
    visit(firefox, front)
    firefox.run_in_browser("Services.io.offline = true")
    try:
        firefox.run(f"{COPY_THE_TOKEN} hitcount.count()")
    finally:
        firefox.run_in_browser("Services.io.offline = false")
    front.wait_for("/seen/", 2)

    assert front.hits == 2


@pytest.mark.usefixtures("complaints")
def test_image_counts_without_javascript(firefox, front):
    before = read_hits(front)
    firefox.run_in_browser("Services.prefs.setBoolPref('javascript.enabled', false)")
    try:
        firefox.go(front.address + CACHED)
    finally:
        firefox.run_in_browser("Services.prefs.setBoolPref('javascript.enabled', true)")
    front.wait_for(".gif")

    assert read_hits(front) == before + 1
