"""What identifying visitors costs a page, and that it changes none."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client

from django_hitcount.counters.days import day_of
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.visitors.browsing import ENGINES, FIREFOX, get, through_middleware

pytestmark = pytest.mark.usefixtures("nothing_fails")


RULES = [{"visitors": True}, {"repeat": "daily"}, {"repeat": 60}]


@pytest.mark.django_db(transaction=True)
class TestPages:
    @pytest.fixture
    def article(self) -> Article:
        return Article.objects.create(title="Tea")

    @pytest.fixture(autouse=True, params=RULES, ids=str)
    def site(self, request, settings, article):
        """A site with users, and a counter that distinguishes visitors."""
        contrib = "django.contrib"
        settings.MIDDLEWARE = [
            f"{contrib}.sessions.middleware.SessionMiddleware",
            f"{contrib}.auth.middleware.AuthenticationMiddleware",
        ]
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": request.param}}

    def page(self, article, view="articles", **cookies) -> HttpResponse:
        client = Client(headers=BROWSER)
        for name, value in cookies.items():
            client.cookies[name] = value
        response = client.get(f"/{view}/{article.pk}/")
        assert response.status_code == 200
        return response

    def is_untouched(self, response: HttpResponse) -> bool:
        return not response.has_header("Vary") and not response.cookies

    def test_anonymous_page_costs_no_query_and_is_not_touched(
        self, redis_buffer, article, django_assert_num_queries
    ):
        self.page(article)  # Loads the visitor key, and the total.

        with django_assert_num_queries(1):  # The article.
            response = self.page(article)
        assert self.is_untouched(response)
        assert not Session.objects.exists()

    def test_page_of_a_user_that_does_not_show_it_is_not_touched(self, buffer, article, login):
        assert self.is_untouched(self.page(article, **login()))
        assert article.hits == 1

    @pytest.mark.parametrize(
        ("view", "queries"),
        [("articles", ["article", "session"]), ("greeting", ["article", "session", "user"])],
    )
    def test_session_is_read_once_for_page_and_hit(
        self, redis_buffer, article, login, django_assert_num_queries, view, queries
    ):
        cookies = login()
        self.page(article, view, **cookies)

        with django_assert_num_queries(len(queries)):
            self.page(article, view, **cookies)

    def test_page_that_shows_its_user_varies(self, buffer, article, login):
        response = self.page(article, "greeting", **login())

        assert response.content == b"1\nHello ann"
        assert response["Vary"] == "Cookie"

    def test_page_that_finds_no_user_varies_too(self, buffer, article):
        assert self.page(article, "greeting")["Vary"] == "Cookie"

    @pytest.mark.parametrize("engine", ENGINES)
    def test_forged_session_becomes_none(self, buffer, article, settings, engine, tmp_path):
        settings.SESSION_FILE_PATH = tmp_path
        settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
        response = self.page(article, sessionid="forged" * 5)

        assert self.is_untouched(response)
        assert not Session.objects.exists()
        assert not [*tmp_path.iterdir()]

    def test_refused_hit_reads_no_session(self, buffer, article, session_that_breaks):
        client = Client(headers={"user-agent": "curl/8.5.0"})
        client.cookies["sessionid"] = "x" * 32

        assert client.get(f"/articles/{article.pk}/").content == b"0\n"

    def test_half_a_surrogate_counts_as_any_other(self, buffer, article, identify_by):
        identify_by("browser")
        request = get()
        request.META["HTTP_USER_AGENT"] = f"{FIREFOX} \ud800"

        assert record_hit(article, request).counted


@pytest.mark.django_db(transaction=True)
def test_user_with_two_browsers_is_one_visitor(buffer, settings, login):
    article = Article.objects.create(title="Tea")
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    for cookies in [login(), login(), {}]:
        record_hit(article, through_middleware(get(**cookies)))

    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 2


@pytest.mark.django_db(transaction=True)
def test_counter_that_distinguishes_no_visitors_reads_no_session(buffer, session_that_breaks):
    article = Article.objects.create(title="Tea")

    assert record_hit(article, through_middleware(get(sessionid="x" * 32))).total == 1
