"""How visitors are identified, and that this changes no page."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import import_module

import pytest
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.middleware import SessionMiddleware
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils.functional import SimpleLazyObject
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from django_hitcount.counters.days import day_of
from django_hitcount.recording import record_hit
from django_hitcount.visitors.identity import identify
from tests.app.models import Article
from tests.browsers import BROWSER

FIREFOX = BROWSER["user-agent"]
OWN = f"{__name__}."
ENGINES = ["db", "cached_db", "cache", "file", "signed_cookies"]
RULES = [{"visitors": True}, {"repeat": "daily"}, {"repeat": 60}]


def by_header(request: HttpRequest) -> str | None:
    return request.headers.get("X-Member")


def broken(request: HttpRequest) -> str | None:
    raise ZeroDivisionError


def broken_answer(request: HttpRequest) -> object:
    return SimpleLazyObject(lambda: broken(request))


def get(address="203.0.113.9", **cookies):
    request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address)
    request.COOKIES = cookies
    return request


def through_middleware(request: HttpRequest) -> HttpRequest:
    """As a view sees it: with a session, and a user that nobody has asked for."""
    SessionMiddleware(lambda request: HttpResponse()).process_request(request)
    AuthenticationMiddleware(lambda request: HttpResponse()).process_request(request)
    return request


def new_session(engine="db", **data) -> str:
    store = import_module(f"django.contrib.sessions.backends.{engine}").SessionStore()
    store.update(data or {"basket": [1]})
    store.save()
    return store.session_key


@pytest.fixture(autouse=True)
def nothing_fails(request, caplog) -> Iterator[None]:
    """An identity that raises is ignored, as one that returns None."""
    yield
    assert "error" in request.node.name or not caplog.get_records("call")


@pytest.fixture
def identify_by(settings):
    """Set how visitors are identified."""

    def set_identities(*names, **more):
        settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_IDENTITY": names, **more}

    return set_identities


@pytest.fixture
def user(db) -> User:
    return User.objects.create(username="ann", pk=5)


@pytest.fixture
def login(user):
    """Log the user in; returns the cookies of a new session."""

    def logged_in():
        client = Client(headers=BROWSER)
        client.force_login(user)
        return {"sessionid": client.cookies["sessionid"].value}

    return logged_in


@pytest.fixture
def session_that_breaks(monkeypatch):
    """Whoever reads one fails, and that is logged."""
    monkeypatch.setattr(SessionBase, "_session", property(broken))


class TestUser:
    def test_who_is_logged_in(self, user):
        request = get()
        request.user = user

        assert identify(request) == "user:5"

    @pytest.mark.parametrize("found", [AnonymousUser(), None])
    def test_nobody_is(self, found):
        request = get()
        request.user = found

        assert identify(request).startswith("address:")

    def test_the_same_whether_or_not_the_page_has_asked_for_the_user(self, login):
        requests = [through_middleware(get(**login())) for _ in range(2)]
        assert requests[0].user.is_authenticated

        assert [identify(request) for request in requests] == ["user:5"] * 2

    @pytest.mark.django_db(transaction=True)
    def test_costs_the_session_and_not_the_user(self, login, django_assert_num_queries):
        request = through_middleware(get(**login()))

        with django_assert_num_queries(1):
            assert identify(request) == "user:5"
        with django_assert_num_queries(1):
            assert request.user.username == "ann"

    def test_session_of_nobody(self, db):
        cookies = {"sessionid": new_session()}

        assert identify(through_middleware(get(**cookies))) == f"session:{cookies['sessionid']}"

    @pytest.mark.django_db(transaction=True)
    def test_session_that_is_over_is_looked_for_once(self, identify_by, django_assert_num_queries):
        identify_by("user", "session", "address")
        request = through_middleware(get(sessionid="over" * 8))

        with django_assert_num_queries(1):
            assert identify(request).startswith("address:")

    def test_lazy_user_of_a_site_without_sessions(self, user):
        request = get()
        request.user = SimpleLazyObject(lambda: user)

        assert identify(request) == "user:5"


class TestSession:
    @pytest.fixture(autouse=True)
    def first(self, identify_by, settings, tmp_path):
        settings.SESSION_FILE_PATH = tmp_path
        identify_by("session", "address")

    @pytest.fixture(params=ENGINES)
    def engine(self, request, settings, db) -> str:
        settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{request.param}"
        return request.param

    def test_existing_one_tells(self, engine):
        key = new_session(engine)

        assert identify(through_middleware(get(sessionid=key))) == f"session:{key}"

    @pytest.mark.parametrize("key", ["forged" * 5, "x", ""])
    def test_forged_one_does_not(self, engine, key):
        request = through_middleware(get(sessionid=key))

        assert identify(request).startswith("address:")
        assert not request.session.modified

    @pytest.mark.parametrize("character", ["\0", "\U0001f36a", "\ud800", "\xe9", " ", "\x7f", "\n"])
    def test_key_that_no_backend_makes_is_not_looked_for(
        self, engine, character, django_assert_num_queries
    ):
        request = through_middleware(get(sessionid=f"{character}" + "x" * 31))

        with django_assert_num_queries(0):
            assert identify(request).startswith("address:")

    def test_none_is_made(self, engine):
        request = through_middleware(get())

        assert identify(request).startswith("address:")
        assert request.session.session_key is None

    def test_one_that_is_just_being_made_tells_nobody_yet(self, engine):
        request = through_middleware(get())
        request.session["basket"] = [1]

        assert identify(request).startswith("address:")
        assert request.session.session_key is None
        assert request.session.modified

    @pytest.mark.parametrize("is_accessed", [False, True])
    @pytest.mark.parametrize("is_modified", [False, True])
    def test_page_does_not_notice(self, engine, is_accessed, is_modified):
        request = through_middleware(get(sessionid=new_session(engine)))
        request.session.accessed, request.session.modified = is_accessed, is_modified
        identify(request)

        assert request.session.accessed is is_accessed
        assert request.session.modified is is_modified

    def test_site_without_sessions(self):
        assert identify(get(sessionid="x" * 32)).startswith("address:")

    def test_error_is_logged_and_the_page_does_not_notice(self, monkeypatch, caplog):
        request = through_middleware(get(sessionid="x" * 32))
        monkeypatch.setattr(type(request.session), "load", broken)

        assert identify(request).startswith("address:")
        assert "'session' failed" in caplog.text
        assert not request.session.accessed


class TestCookie:
    def test_one_that_is_named_in_the_settings(self, identify_by):
        identify_by("cookie", "address", VISITOR_COOKIE="visitor")

        assert identify(get(visitor="abc", other="x")) == "cookie:abc"

    @pytest.mark.parametrize("cookies", [{}, {"visitor": ""}, {"other": "abc"}])
    def test_who_has_none(self, identify_by, cookies):
        identify_by("cookie", "address", VISITOR_COOKIE="visitor")

        assert identify(get(**cookies)).startswith("address:")

    def test_none_is_named(self, identify_by):
        identify_by("cookie", "address")

        assert identify(get(visitor="abc", cookie="abc", **{"None": "x"})).startswith("address:")


class TestAddress:
    @pytest.fixture(autouse=True)
    def only(self, identify_by):
        identify_by("address")

    def test_address_and_user_agent(self):
        assert identify(get()) == f"address:203.0.113.9 {FIREFOX}"

    @pytest.mark.parametrize(
        ("one", "other", "is_same"),
        [
            ("203.0.113.9", "203.0.113.9", True),
            ("203.0.113.9", "203.0.113.10", False),
            ("203.0.113.9", "::ffff:203.0.113.9", True),
            ("2001:db8:1:2::3", "2001:db8:1:2:ffff::4", True),
            ("2001:db8:1:2::3", "2001:db8:1:3::3", False),
        ],
    )
    def test_ipv6_is_identified_by_64_bits(self, one, other, is_same):
        assert (identify(get(one)) == identify(get(other))) is is_same

    def test_two_browsers_at_one_address(self):
        other = RequestFactory(headers={"user-agent": "Opera"}).get("/", REMOTE_ADDR="203.0.113.9")

        assert identify(get()) != identify(other)
        del other.META["HTTP_USER_AGENT"]
        assert identify(other) == "address:203.0.113.9 "

    def test_forged_header_is_nobody_else(self, identify_by):
        request = get()
        request.META["HTTP_X_FORWARDED_FOR"] = "198.51.100.66"
        assert identify(request) == identify(get())

        identify_by("address", TRUSTED_PROXIES=1)
        assert identify(request).startswith("address:198.51.100.66 ")

    @pytest.mark.parametrize("address", ["", "unix:", "junk"])
    def test_no_address(self, address):
        assert identify(get(address)) is None


class TestBrowser:
    def test_wherever_it_is(self, identify_by):
        identify_by("browser")

        assert identify(get()) == identify(get("198.51.100.1")) == f"browser:{FIREFOX}"

    def test_without_a_user_agent_there_is_no_identity(self, identify_by):
        identify_by("browser")

        assert identify(RequestFactory().get("/")) is None


class TestOrder:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["user", "cookie", "browser"], "user"),
            (["cookie", "user"], "cookie"),
            (["browser", "user"], "browser"),
            (["session", f"{OWN}by_header", "cookie"], "cookie"),
            ([f"{OWN}by_header", "address", "user"], "address"),
        ],
    )
    def test_first_that_answers_counts(self, identify_by, names, expected):
        identify_by(*names, VISITOR_COOKIE="visitor")
        request = get(visitor="abc")
        request.user = User(pk=5)

        assert identify(request).startswith(f"{expected}:")

    def test_equal_answers_of_two_are_two_visitors(self, identify_by):
        identify_by("user", "cookie", VISITOR_COOKIE="visitor")
        member = get()
        member.user = User(pk=5)

        assert identify(member) != identify(get(visitor="5"))

    def test_default(self, settings):
        settings.HITCOUNT = {}
        request = get(visitor="abc")
        assert identify(request).startswith("address:")

        settings.HITCOUNT = {"VISITOR_COOKIE": "visitor"}
        assert identify(request) == "cookie:abc"


class TestCustom:
    def test_callable_by_its_path(self, identify_by):
        identify_by(f"{OWN}by_header", "browser")
        request = RequestFactory(headers={**BROWSER, "X-Member": "77"}).get("/")

        assert identify(request) == f"{OWN}by_header:77"

    @pytest.mark.parametrize("headers", [{}, {"X-Member": ""}])
    def test_no_answer(self, identify_by, headers):
        identify_by(f"{OWN}by_header", "browser")
        request = RequestFactory(headers={**BROWSER, **headers}).get("/")

        assert identify(request) == f"browser:{FIREFOX}"

    @pytest.mark.parametrize("name", ["broken", "broken_answer"])
    def test_error_is_logged_and_the_next_is_asked(self, identify_by, caplog, name):
        identify_by(OWN + name, "browser")

        assert identify(get()) == f"browser:{FIREFOX}"
        (record,) = caplog.records
        assert (record.levelno, record.exc_info[0]) == (logging.ERROR, ZeroDivisionError)
        assert f"'{OWN}{name}' failed" in caplog.text


@hypothesis_settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_whatever_a_client_sends_raises_nothing(user_agent, address, cookie):
    request = get(address, sessionid=cookie)
    request.META["HTTP_USER_AGENT"] = user_agent

    assert identify(request) is None or identify(request).startswith("address:")


@pytest.mark.django_db(transaction=True)
class TestPages:
    @pytest.fixture
    def article(self) -> Article:
        return Article.objects.create(title="Tea")

    @pytest.fixture(autouse=True, params=RULES, ids=str)
    def site(self, request, settings, article):
        """A site with users, and a counter that tells visitors apart."""
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

    def test_refused_hit_looks_for_nobody(self, buffer, article, session_that_breaks):
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

    assert article.visitors_on(day_of()) == 2


@pytest.mark.django_db(transaction=True)
def test_counter_that_tells_nobody_apart_reads_no_session(buffer, session_that_breaks):
    article = Article.objects.create(title="Tea")

    assert record_hit(article, through_middleware(get(sessionid="x" * 32))).total == 1
