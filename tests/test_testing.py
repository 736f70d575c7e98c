"""The helpers for tests of projects, used as projects use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.http import HttpResponse
from django.template import Context, Template
from django.test import TestCase, TransactionTestCase

from django_hitcount import conf, get_hits, record_hit, record_hits
from django_hitcount.testing import (
    AsyncBrowserClient,
    AsyncBrowserRequestFactory,
    BrowserClient,
    BrowserRequestFactory,
    aassert_hits,
    assert_hits,
    override_hitcount,
)
from tests.app.models import Article

ROOT = Path(__file__).parent.parent


def _page_of_a_cache(article: Article) -> str:
    source = '{% load hitcount %}{% hit_beacon a %}<b data-hits="{% beacon_token a show="hits" %}">'
    return Template(source).render(Context({"a": article}))


class InATestCase(TestCase):
    """Nothing is committed here."""

    client_class = BrowserClient
    async_client_class = AsyncBrowserClient

    @classmethod
    def setUpTestData(cls) -> None:
        cls.article = Article.objects.create(title="Tea")

    def test_a_page_counts(self):
        for visits in (1, 2):
            self.client.get(f"/articles/{self.article.pk}/")
            assert_hits(self.article, visits)

    def test_in_a_transaction_of_the_view(self):
        self.client.get(f"/atomic/{self.article.pk}/")

        assert_hits(self.article, 1)

    def test_a_view_that_rolls_back_counts_nothing(self):
        self.client.get(f"/rolls-back/{self.article.pk}/")

        assert_hits(self.article, 0)

    async def test_an_async_page_counts(self):
        await self.async_client.get(f"/async/{self.article.pk}/")

        await aassert_hits(self.article, 1)

    def test_a_page_of_a_cache_counts_by_its_beacon(self):
        page = HttpResponse(_page_of_a_cache(self.article))
        for visits in (1, 2):
            answer = self.client.send_beacon(page)

            assert_hits(self.article, visits)
            assert [*answer.json()["numbers"].values()] == [visits - 1]  # Before the COMMIT.

    async def test_a_page_of_a_cache_counts_by_an_async_beacon(self):
        page = HttpResponse(await sync_to_async(_page_of_a_cache)(self.article))
        await self.async_client.send_beacon(page)

        await aassert_hits(self.article, 1)

    def test_a_page_without_a_beacon_is_an_error(self):
        with self.assertRaisesMessage(AssertionError, "no data-hit, data-hits or data-visitors"):
            self.client.send_beacon(HttpResponse("<p data-mine='1'>"))

    def test_a_hit_outside_of_a_page_waits(self):
        record_hit(self.article)

        with self.assertRaisesMessage(AssertionError, "wait for a COMMIT: use BrowserClient"):
            assert_hits(self.article, 1)

    def test_a_hit_that_has_waited_is_no_reason(self):
        with self.captureOnCommitCallbacks(execute=True):
            record_hit(self.article)

        with pytest.raises(AssertionError) as caught:
            assert_hits(self.article, 2)
        assert "COMMIT" not in str(caught.value)

    def test_what_else_waits_for_the_commit_is_no_reason(self):
        transaction.on_commit(lambda: None)
        record_hit(self.article, counter="downloads")
        record_hit(Article.objects.create(title="Coffee"))

        with self.assertRaisesMessage(AssertionError, "should have 1.") as caught:
            assert_hits(self.article, 1)
        record_hit(self.article)
        with self.assertRaisesMessage(AssertionError, "should have -1.") as too_many:
            assert_hits(self.article, -1)
        for error in (caught, too_many):
            assert "COMMIT" not in str(error.exception)

    def test_a_transaction_of_the_test_is_its_own(self):
        with transaction.atomic():
            self.client.get(f"/articles/{self.article.pk}/")
            assert_hits(self.article, 0)


class WithCommits(TransactionTestCase):
    client_class = BrowserClient

    def test_a_page_counts_once(self):
        article = Article.objects.create(title="Tea")
        with transaction.atomic():
            self.client.get(f"/articles/{article.pk}/")

        assert_hits(article, 1)

    def test_what_waits_for_a_transaction_of_the_test_is_done_once(self):
        article, done = Article.objects.create(title="Tea"), []

        def answer(*args: object) -> HttpResponse:
            transaction.on_commit(lambda: done.append("sent a mail"))
            return HttpResponse()

        with mock.patch("tests.urls.render", answer), transaction.atomic():
            self.client.get(f"/articles/{article.pk}/")
            assert done == []
        assert done == ["sent a mail"]


@pytest.mark.django_db
class TestAssertion:
    @pytest.fixture
    def article(self):
        return Article.objects.create(title="Tea")

    def test_says_what_was_found(self, article):
        with pytest.raises(AssertionError, match=r"Article object.* has 0 hits of 'downloads'"):
            assert_hits(article, 1, counter="downloads")

    @pytest.mark.parametrize(("found", "says_so"), [(2, True), (0, False)])
    def test_says_that_redis_keeps_hits_of_other_tests(self, redis_buffer, article, found, says_so):
        with TestCase.captureOnCommitCallbacks(execute=True):
            record_hits([article] * found)

        with pytest.raises(AssertionError) as caught:
            assert_hits(article, 1)
        assert ("REDIS is set: hits in Redis survive" in str(caught.value)) is says_so

    def test_without_redis_says_nothing_of_it(self, article):
        with override_hitcount(REDIS=None), pytest.raises(AssertionError) as caught:
            assert_hits(article, -1)
        assert "Redis" not in str(caught.value)

    def test_takes_days(self, article, browser_client):
        browser_client.get(f"/articles/{article.pk}/")

        assert_hits(article, 1, days=7)
        with pytest.raises(AssertionError, match="has 1 hits"):
            assert_hits(article, 2, days=1)

    def test_says_what_was_refused(self, article, client, browser_client):
        with pytest.raises(AssertionError, match=r"Refused on .*: 1 x bot\. Django's Client"):
            browser_client.get(f"/articles/{article.pk}/", headers={"user-agent": "Googlebot/2.1"})
            assert_hits(article, 1)

    def test_says_what_is_refused_and_waits(self, article, client):
        """Django's own client is no browser, and runs nothing after a COMMIT."""
        client.get(f"/articles/{article.pk}/")

        with pytest.raises(AssertionError, match=r"1 x bot\. .* use BrowserClient\.") as caught:
            assert_hits(article, 1)
        assert "COMMIT" not in str(caught.value)


class TestFixtures:
    def test_requests_are_of_a_browser(self, db, browser_rf, async_browser_rf):
        article = Article.objects.create(title="Tea")

        for factory in (browser_rf, async_browser_rf):
            assert record_hit(article, factory.get("/")).counted
            bot = factory.get("/", headers={"User-Agent": "Googlebot/2.1"})
            assert record_hit(article, bot).refusal == "bot"
        bot = browser_rf.get("/", HTTP_USER_AGENT="Googlebot/2.1")
        assert record_hit(article, bot).refusal == "bot"
        bot = BrowserClient().get("/", headers={"user_agent": "Googlebot/2.1"}).wsgi_request
        assert record_hit(article, bot).refusal == "bot"
        bot = BrowserClient(headers={"user-agent": "Googlebot/2.1"})
        assert bot.get("/").wsgi_request.headers["user-agent"] == "Googlebot/2.1"
        assert not record_hit(article, browser_rf.post("/")).counted

    @pytest.mark.parametrize("in_constructor", [False, True])
    async def test_address_of_an_async_caller(self, in_constructor):
        given = {"REMOTE_ADDR": "203.0.113.7"}
        first, then = (given, {}) if in_constructor else ({}, given)
        requests = [
            AsyncBrowserRequestFactory(**first).get("/", **then),
            (await AsyncBrowserClient(**first).get("/", **then)).asgi_request,
        ]

        assert [request.META["REMOTE_ADDR"] for request in requests] == ["203.0.113.7"] * 2

    @pytest.mark.parametrize("name", ["headers", "user_agent", "User-Agent"])
    async def test_user_agent_of_an_async_caller_wins(self, name):
        given: dict[str, Any] = {name: {"user-agent": "mine"} if name == "headers" else "mine"}
        client = AsyncBrowserClient(**given)
        requests = [
            AsyncBrowserRequestFactory().get("/", **given),
            AsyncBrowserRequestFactory().get("/", headers={"User_Agent": "mine"}),
            AsyncBrowserRequestFactory(**given).get("/"),
            (await client.get("/")).asgi_request,
        ]

        assert [request.headers["user-agent"] for request in requests] == ["mine"] * 4

    @pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
    async def test_clients(self, transactional_db, browser_client, async_browser_client):
        article = await Article.objects.acreate(title="Tea")
        await async_browser_client.get(f"/async/{article.pk}/")

        await aassert_hits(article, 1)
        assert isinstance(browser_client, BrowserClient)

    def test_plugin_alone_imports_no_django(self, pytester):
        pytester.makepyfile(
            """
            import sys

            def test(request):
                assert "django" not in sys.modules
                plugins = request.config.pluginmanager
                assert plugins.has_plugin("django_hitcount.pytest_plugin")
            """
        )
        command = [sys.executable, "-m", "pytest", "-q", "-p", "django_hitcount.pytest_plugin"]
        own = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment = {**os.environ, **own}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        subprocess.run(command, cwd=pytester.path, env=environment, check=True)


class TestOverride:
    def test_other_keys_stay(self):
        counters = settings.HITCOUNT["COUNTERS"]
        with override_hitcount(SLOTS=7), override_hitcount(PARTITIONS=3):
            config = conf.get_config()
            assert (config.slots, config.partitions) == (7, 3)
            assert settings.HITCOUNT["COUNTERS"] == counters
        assert conf.get_config().slots == 64

    @override_hitcount(SLOTS=7)
    @override_hitcount(PARTITIONS=3)
    def test_decorator(self):
        assert (conf.get_config().slots, conf.get_config().partitions) == (7, 3)

    @pytest.mark.parametrize("changes", [{"SLOT": 7}, {"SLOTS": "many"}])
    def test_wrong_value_is_an_error(self, changes):
        before = settings.HITCOUNT
        with pytest.raises(ImproperlyConfigured, match="SLOT"), override_hitcount(**changes):
            pass
        assert settings.HITCOUNT is before

    @pytest.mark.parametrize("changes", [{"SLOT": 7}, {"SLOTS": "many"}])
    def test_wrong_value_of_a_class_is_an_error(self, changes):
        with pytest.raises(ImproperlyConfigured, match="SLOT"):
            override_hitcount(**changes)(type("Tests", (TestCase,), {}))

    def test_class_that_is_no_test_case_of_django_is_an_error(self):
        with pytest.raises(ValueError, match="Only subclasses of Django SimpleTestCase"):
            override_hitcount(SLOTS=7)(type("Tests", (), {}))

    def test_headless_browser_may_count(self, db):
        article = Article.objects.create(title="Tea")
        agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/140.0.0.0"
        request = BrowserRequestFactory(headers={"user-agent": agent}).get("/")

        assert record_hit(article, request).refusal == "bot"
        with override_hitcount(NOT_BOT_USER_AGENTS=["HeadlessChrome"]):
            assert record_hit(article, request).counted


@override_hitcount(SLOTS=7)
@override_hitcount(PARTITIONS=3)
class OfAClass(TestCase):
    def test_it_overrides(self):
        assert (conf.get_config().slots, conf.get_config().partitions) == (7, 3)
        assert get_hits([]) == {}
