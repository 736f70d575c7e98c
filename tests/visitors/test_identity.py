"""How visitors are identified."""

from __future__ import annotations

import logging

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject
from hypothesis import given
from hypothesis import strategies as st

from django_hitcount.visitors import identify
from tests.browsers import BROWSER
from tests.visitors.browsing import FIREFOX, broken, get, new_session, through_middleware

pytestmark = pytest.mark.usefixtures("nothing_fails")


OWN = f"{__name__}."


def by_header(request: HttpRequest) -> str | None:
    return request.headers.get("X-Member")


def broken_answer(request: HttpRequest) -> object:
    return SimpleLazyObject(lambda: broken(request))


class TestUser:
    def test_user_who_is_logged_in(self, user):
        request = get()
        request.user = user

        assert identify(request) == "user:5"

    @pytest.mark.parametrize("found", [AnonymousUser(), None])
    def test_anonymous_user_is_not_the_identity(self, found):
        request = get()
        request.user = found

        assert identify(request).startswith("address:")

    def test_same_identity_whether_or_not_the_page_has_read_the_user(self, login):
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

    def test_session_without_a_user(self, db):
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

    def test_forged_header_changes_nothing(self, identify_by):
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


@given(st.text(), st.text(), st.text())
def test_whatever_a_client_sends_raises_nothing(user_agent, address, cookie):
    request = get(address, sessionid=cookie)
    request.META["HTTP_USER_AGENT"] = user_agent

    assert identify(request) is None or identify(request).startswith("address:")
