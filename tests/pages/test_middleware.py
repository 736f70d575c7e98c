"""What is a page, and what is counted of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from django.test import Client

from django_hitcount import flush_hits, get_visitors, known_rows, popular
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.known_rows import clear_known_rows
from django_hitcount.pages import recording
from django_hitcount.pages.models import Page, WholeSite
from django_hitcount.refusals import HitContext, refusal
from django_hitcount.series import visitors_by_day
from django_hitcount.signals import hit_refused
from django_hitcount.testing import AsyncBrowserClient
from tests.browsers import BROWSER
from tests.pages.site import counts
from tests.redis_server import sends
from tests.visiting import kept_of_visitors, refused_today

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def refusals_sent() -> Iterator[list[tuple[str, str, str]]]:
    """The counter, the object and the refusal of each hit_refused that is sent in the block."""
    sent = []

    def note(obj, counter, refusal, **kwargs):
        sent.append((counter, str(obj), refusal))

    hit_refused.connect(note)
    try:
        yield sent
    finally:
        hit_refused.disconnect(note)


def test_html_counts_for_its_page_and_for_the_site(browser):
    browser.get("/tea/")
    browser.get("/tea/")
    browser.get("/xhtml/")

    assert counts() == {"/tea/": 2, "/xhtml/": 1, "": 3}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("get", f"/tea/?status={status}") for status in (201, 204, 301, 302, 403, 404, 410, 500)),
        *((method, "/tea/") for method in ("head", "post", "put", "options")),
        ("get", "/json/"),
        ("get", "/missing/"),
        ("get", "/admin/login/"),
        ("get", "/admin"),
        ("get", "/office/login/"),
    ],
)
def test_other_answers_count_nothing(browser, method, path):
    getattr(browser, method)(path)

    assert counts() == {"": 0}
    assert refused_today() == {}


def test_stream_is_counted_and_not_read(browser):
    assert browser.get("/stream/").streaming
    assert counts() == {"/stream/": 1, "": 1}


def test_304_counts_if_its_page_is_known(browser, settings):
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:1],
        "django.middleware.http.ConditionalGetMiddleware",
    ]
    headers = {"If-None-Match": '"tea"'}
    assert browser.get("/tea/", headers=headers).status_code == 304
    assert counts() == {"": 0}

    browser.get("/tea/")
    clear_known_rows()
    response = browser.get("/tea/", headers=headers)
    assert "Content-Type" not in response
    assert browser.get("/json/", headers=headers).status_code == 304
    assert counts() == {"/tea/": 2, "": 2}


def test_304_of_a_path_that_is_no_page_costs_one_query_in_five_minutes(
    browser, settings, django_assert_num_queries
):
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:1],
        "django.middleware.http.ConditionalGetMiddleware",
    ]
    headers = {"If-None-Match": '"tea"'}
    for path, queries in (("/json/", 1), ("/json/", 0), ("/tea/", 1), ("/tea/", 0)):
        with django_assert_num_queries(queries):
            assert browser.get(path, headers=headers).status_code == 304
    with django_assert_num_queries(0):
        assert browser.get(f"/{'x' * 501}", headers=headers).status_code == 304

    browser.get("/tea/")
    for _ in range(2):
        browser.get("/tea/", headers=headers)
    assert counts() == {"/tea/": 3, "": 3}


def test_flood_of_304_takes_the_place_of_no_page(
    browser, settings, monkeypatch, django_assert_num_queries
):
    """Anybody can send ``If-None-Match: *`` to random paths."""
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[:1],
        "django.middleware.http.ConditionalGetMiddleware",
    ]
    monkeypatch.setattr(known_rows, "MOST_REMEMBERED", 3)
    browser.get("/tea/")
    for number in range(10):
        browser.get(f"/{number}/", headers={"If-None-Match": "*"})

    with django_assert_num_queries(0 if settings.HITCOUNT["REDIS"] else 4):
        browser.get("/tea/")


def test_site_cache_counts(browser, settings):
    settings.MIDDLEWARE = [
        settings.MIDDLEWARE[0],
        "django.middleware.cache.UpdateCacheMiddleware",
        *settings.MIDDLEWARE[1:],
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]
    settings.CACHES = {
        **settings.CACHES,
        "default": {**settings.CACHES["default"], "KEY_PREFIX": "s"},
    }
    for _ in range(3):
        browser.get("/tea/")
        browser.get("/cached/")

    assert counts() == {"/tea/": 3, "/cached/": 3, "": 6}


def test_refused_request_makes_no_page(browser):
    with refusals_sent() as sent:
        browser.get("/tea/", headers={"user-agent": "Googlebot/2.1"})
        browser.get("/tea/", headers={"sec-purpose": "prefetch"})

    assert counts() == {"": 0}
    assert refused_today() == {("views", "bot"): 1, ("views", "prefetch"): 1}
    assert sent == [("views", "/tea/", "bot"), ("views", "/tea/", "prefetch")]


def test_rules_of_the_counter_apply(counted, browser):
    counted(views={"repeat": "daily", "visitors": True})
    for path in ("/tea/", "/tea/", "/mate/"):
        browser.get(path)
    browser.get("/mate/", REMOTE_ADDR="203.0.113.7")

    assert counts() == {"/tea/": 1, "/mate/": 2, "": 2}
    assert get_visitors(WholeSite()) == 2
    assert visitors_by_day(WholeSite(), days=1) == {day_of(): 2}


@pytest.mark.parametrize(
    "rule", [{"repeat": "daily"}, {"repeat": 60}, {"repeat": 60, "visitors": True}]
)
def test_a_view_is_refused_once_and_only_if_its_page_is_repeated(counted, browser, rule):
    """The whole site is repeated by each further page, which nobody would call refused."""
    counted(views=rule)
    for path in ("/tea/", "/mate/", "/coffee/", "/water/"):
        browser.get(path)
    assert refused_today() == {}

    for _ in range(2):
        browser.get("/mate/")
    assert refused_today() == {("views", "repeat"): 2}
    assert counts() == {"/tea/": 1, "/mate/": 1, "/coffee/": 1, "/water/": 1, "": 1}


@pytest.mark.parametrize("rule", [{"repeat": "daily"}, {"repeat": 60}, {"per_address": 1}])
def test_no_repeat_of_the_site_is_reported(counted, browser, rule):
    """Nor on further counters of the site, whose own refusals are."""
    own = {**rule, "refusals": ["django_hitcount.refusals.bot"]}
    counted(views=rule, counters={"browsers": own}, site_counters=["browsers"])
    with refusals_sent() as sent:
        for path in ("/tea/", "/mate/"):
            browser.get(path)
        assert sent == []
        assert refused_today() == {}
        assert [counts()[""], counts("browsers")[""]] == [1, 1]

        browser.get("/mate/")
        browser.get("/mate/", headers={"user-agent": "Googlebot/2.1"})
    name = "address_limit" if "per_address" in rule else "repeat"
    assert sent == [
        ("views", "/mate/", name),
        ("browsers", "/mate/", "bot"),
        ("views", "/mate/", "bot"),
    ]
    assert refused_today() == {("views", name): 1, ("views", "bot"): 1, ("browsers", "bot"): 1}


@pytest.mark.parametrize("names", [["views"], ["browsers", "views", "browsers"]])
def test_the_site_counts_once_on_each_counter(counted, browser, names):
    counted(counters={"browsers": {}}, site_counters=names)
    browser.get("/tea/")

    assert counts() == {"/tea/": 1, "": 1}
    assert counts("browsers")[""] == ("browsers" in names)


@refusal("tea", "Tea is not counted.")
def no_tea(context: HitContext) -> bool:
    return str(context.obj) == "/tea/"


def test_refusals_of_further_counters_get_the_page(counted, browser):
    refusals = [f"{__name__}.no_tea"]
    counted(counters={"browsers": {"refusals": refusals}}, site_counters=["browsers"])
    for path in ("/tea/", "/mate/"):
        browser.get(path)

    assert [counts()[""], counts("browsers")[""]] == [2, 1]


def test_the_limit_of_an_address_refuses_a_view_once(counted, browser):
    counted(views={"per_address": 2})
    for path in ("/tea/", "/mate/", "/coffee/"):
        browser.get(path)
    assert refused_today() == {}

    for _ in range(2):
        browser.get("/mate/")
    assert refused_today() == {("views", "address_limit"): 1}
    assert counts() == {"/tea/": 1, "/mate/": 2, "/coffee/": 1, "": 2}


def test_what_a_refusal_refuses_is_one_refused_hit_of_a_visitor_who_was_counted(counted, browser):
    counted(views={"repeat": "daily"})
    browser.get("/tea/")
    browser.get("/tea/", headers={"sec-purpose": "prefetch"})

    assert refused_today() == {("views", "prefetch"): 1}


def test_pages_may_have_a_counter_of_their_own(counted, browser):
    counted(counter="page_views", counters={"page_views": {}})
    browser.get("/tea/")

    assert counts("page_views") == {"/tea/": 1, "": 1}
    assert counts() == {"/tea/": 0, "": 0}


def test_pages_not_found_count_apart(counted, browser):
    counted(not_found="lost", counters={"lost": {}})
    browser.get("/missing/")
    browser.get("/tea/")

    assert counts("lost") == {"/missing/": 1, "/tea/": 0, "": 0}
    assert counts() == {"/missing/": 0, "/tea/": 1, "": 1}


@pytest.mark.parametrize(
    ("option", "value"),
    [("counter", "nowhere"), ("not_found", "nowhere"), ("site_counters", ["nowhere"])],
)
def test_counter_must_be_declared(counted, browser, option, value):
    counted(**{option: value})

    with pytest.raises(
        ImproperlyConfigured, match=f"{option}.* names 'nowhere', which is no counter"
    ):
        browser.get("/tea/")


def test_async_view_counts(browser, settings):
    browser.get("/async/")

    assert counts() == {"/async/": 1, "": 1}


async def test_async_handler_counts(browser, no_connection_of_the_thread_is_left):
    client = AsyncBrowserClient()
    await client.get("/async/")
    await client.get("/tea/")
    await client.get("/json/")

    assert await sync_to_async(counts)() == {"/async/": 1, "/tea/": 1, "": 2}


async def test_response_that_is_no_page_enters_no_thread_in_an_async_site(browser):
    client = AsyncBrowserClient()
    with mock.patch("django_hitcount.pages.middleware.sync_to_async") as enter_thread:
        await client.get("/json/")

    enter_thread.assert_not_called()


def test_view_that_rolls_back_its_own_changes_counts(browser):
    browser.get("/rolls-back/")

    assert counts() == {"/rolls-back/": 1, "": 1}


def test_with_redis_a_known_page_costs_one_round_trip_and_no_query(
    redis, counted, django_assert_num_queries, settings
):
    if settings.HITCOUNT["REDIS"] is None:
        pytest.skip("This is about Redis.")
    counted(new_per_hour=2)
    browser = Client(headers=BROWSER)
    browser.get("/tea/")
    with sends() as trips, django_assert_num_queries(0):
        browser.get("/tea/")
    assert trips() == 1
    with sends() as trips, django_assert_num_queries(5):  # Two of them are BEGIN and COMMIT.
        browser.get("/mate/")
    assert trips() == 2
    browser.get("/one-too-many/")
    with sends() as trips, django_assert_num_queries(1):
        browser.get("/another/")
    assert trips() == 1


def test_without_redis_a_known_page_costs_a_transaction_of_two_statements(
    counted, settings, django_assert_num_queries
):
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    browser = Client(headers=BROWSER)
    browser.get("/tea/")

    with django_assert_num_queries(4):  # With BEGIN and COMMIT.
        browser.get("/tea/")


def test_page_that_was_deleted_is_made_again(browser):
    browser.get("/tea/")
    Page.objects.all().delete()
    browser.get("/tea/")

    assert counts()["/tea/"] == 1
    assert counts()[""] == 2


@pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])
def test_counts_may_be_in_a_database_of_their_own(browser, settings):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    for path in ("/tea/", "/mate/", "/tea/"):
        browser.get(path)
    flush_hits()

    assert counts() == {"/tea/": 2, "/mate/": 1, "": 3}
    assert popular(WholeSite, 5) == [WholeSite()]
    assert not WholeSite.objects.using("elsewhere").exists()
    Page.objects.all().delete()
    browser.get("/tea/")
    flush_hits()
    assert counts() == {"/tea/": 1, "": 4}


def test_table_of_pages_that_is_away_costs_the_site_no_hit(browser, monkeypatch, caplog):
    browser.get("/mate/")

    def fail(*args: object, **kwargs: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(recording, "make_page", fail)
    assert browser.get("/tea/").status_code == 200
    assert counts() == {"/mate/": 1, "": 2}
    assert "A page is only counted for the whole site: away" in caplog.text


def test_page_whose_key_cannot_be_read_costs_the_site_no_hit(browser, monkeypatch, caplog):
    """The first page of a process reads the content type of pages."""

    def fail(obj, **kwargs):
        if isinstance(obj, Page):
            raise OperationalError("away")
        return counter_key(obj, **kwargs)

    monkeypatch.setattr(recording, "counter_key", fail)
    assert browser.get("/tea/").status_code == 200
    assert counts() == {"/tea/": 0, "": 1}
    assert "A page is only counted for the whole site: away" in caplog.text


def test_forged_request_breaks_nothing(counted, browser, settings, caplog):
    counted(query=["page"])
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    assert browser.get("/missing/?page=1&b=2&c=3").status_code == 404
    assert browser.get("/tea/?page=1").status_code == 200
    response = browser.get("/xhtml/?page=1&b=2&c=3")

    assert response.status_code == 200
    assert counts() == {"/tea/?page=1": 1, "": 1}
    assert "A page is not counted" in caplog.text


def test_client_that_chooses_its_encoding_gets_its_page(counted, browser):
    """So it can send half of a surrogate pair, which no other encoding has."""
    counted(query=["page"])
    sends_utf_7 = {"Content-Type": "text/html; charset=utf-7"}

    assert browser.get("/xhtml/?page=+2AA-", headers=sends_utf_7).status_code == 200
    assert counts() == {"/xhtml/?page=%3F": 1, "": 1}


def test_they_are_ranked_as_any_objects(browser):
    for path in ("/tea/", "/mate/", "/mate/"):
        browser.get(path)
    flush_hits()

    assert [(page.path, page.hits) for page in popular(Page, 5)] == [("/mate/", 2), ("/tea/", 1)]
    assert [(str(site), site.hits) for site in popular(WholeSite, 5)] == [("The whole site", 3)]


@pytest.mark.parametrize(("refuses", "hits"), [("visitor", 3), ("hit", 1)])
def test_without_consent_nothing_of_a_visitor_is_kept(
    browser, counted, settings, redis, refuses, hits
):
    browser.get("/tea/")
    kept = kept_of_visitors(redis)  # The number of new paths of this hour.
    counted(views={"repeat": "daily", "visitors": True})
    options = {"predicate": lambda request: "agreed" in request.COOKIES, "refuses": refuses}
    asking = {"NAME": "django_hitcount.refusals.consent", "OPTIONS": options}
    settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": [asking]}
    browser.get("/tea/")
    browser.get("/tea/")

    assert counts() == {"/tea/": hits, "": hits}
    assert kept_of_visitors(redis) == kept
