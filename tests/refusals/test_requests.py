"""Which hits are refused by what their requests say."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from django_hitcount.refusals import get_refusals
from tests.browsers import BROWSER
from tests.refusals.reasons import BUILT_IN, get, reason

pytestmark = pytest.mark.usefixtures("nothing_fails")


class TestDefaults:
    def test_three_are_on(self):
        assert [found.name for found in get_refusals()] == ["method", "prefetch", "bot"]

    @pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
    def test_only_get_counts(self, method):
        request = RequestFactory(headers=BROWSER).generic(method, "/")
        request.method = method

        assert reason(request) == "method"
        assert reason(get()) is None

    @pytest.mark.parametrize("header", ["Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"])
    @pytest.mark.parametrize(
        "value", ["prefetch", "prerender", "Prefetch", "prefetch;prerender", "preview"]
    )
    def test_page_that_is_loaded_ahead_does_not_count(self, header, value):
        assert reason(get(**{header: value})) == "prefetch"

    @pytest.mark.parametrize("value", ["", "visit", "?0"])
    def test_other_purposes_count(self, value):
        assert reason(get(**{"Sec-Purpose": value, "Purpose": value})) is None

    @pytest.mark.parametrize("user_agent", ["Googlebot/2.1", "curl/8.5.0", "", " "])
    def test_bots_do_not_count(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) == "bot"

    def test_nor_who_sends_no_user_agent(self):
        assert reason(RequestFactory().get("/")) == "bot"

    @pytest.mark.parametrize("header", ["DNT", "Sec-GPC"])
    def test_the_others_are_off(self, header):
        assert reason(get(user=User(is_staff=True), **{header: "1"})) is None


class TestPreviews:
    OPTIONS = {"cookie": "draft", "header": "X-Draft-Mode"}

    @pytest.mark.parametrize("is_preview", [True, False])
    def test_wagtail_says_so_without_options(self, refuse, is_preview):
        refuse(f"{BUILT_IN}previews")
        request = get()
        request.is_preview = is_preview

        assert reason(request) == ("preview" if is_preview else None)

    @pytest.mark.parametrize("mode", ["edit", "structure", "preview", "content"])
    def test_the_toolbar_of_django_cms_says_so_without_options(self, refuse, mode):
        refuse(f"{BUILT_IN}previews")
        request = get()
        request.toolbar = SimpleNamespace(**{f"{mode}_mode_active": True})

        assert reason(request) == (None if mode == "content" else "preview")

    def test_without_options_neither_a_cookie_nor_a_header_does(self, refuse):
        refuse(f"{BUILT_IN}previews")

        assert reason(get(cookie="draft=1", x_draft_mode="1")) is None

    @pytest.mark.parametrize(
        "header",
        [{"cookie": "a=1; draft=yes"}, {"x-draft-mode": "1"}, {"X-DRAFT-MODE": "no"}],
    )
    def test_cookie_or_header_by_option(self, refuse, header):
        refuse((f"{BUILT_IN}previews", self.OPTIONS))

        assert reason(get(**header)) == "preview"

    @pytest.mark.parametrize(
        "header", [{}, {"cookie": "draft="}, {"cookie": "drafts=1"}, {"x-draft-mode": ""}]
    )
    def test_neither_of_them(self, refuse, header):
        refuse((f"{BUILT_IN}previews", self.OPTIONS))

        assert reason(get(**header)) is None


class TestAddresses:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        listed = ["192.0.2.0/24", "198.51.100.7", "2001:db8::/32"]
        refuse((f"{BUILT_IN}addresses", {"networks": listed}), TRUSTED_PROXIES=["10.0.0.0/8"])

    def came_from(self, address, forwarded_for=""):
        request = get()
        request.META |= {"REMOTE_ADDR": address, "HTTP_X_FORWARDED_FOR": forwarded_for}
        return reason(request)

    @pytest.mark.parametrize(
        "address", ["192.0.2.255", "198.51.100.7", "2001:db8:ffff::1", "::ffff:192.0.2.1"]
    )
    def test_client_in_one_of_the_networks(self, address):
        assert self.came_from(address) == "address"

    @pytest.mark.parametrize("address", ["192.0.3.0", "198.51.100.8", "2001:db9::1", "", "junk"])
    def test_any_other(self, address):
        assert self.came_from(address) is None

    def test_proxies_are_looked_behind_if_they_are_trusted(self):
        assert self.came_from("10.0.0.1", "192.0.2.1") == "address"
        assert self.came_from("203.0.113.9", "192.0.2.1") is None
        assert self.came_from("192.0.2.1", "203.0.113.9") == "address"


class TestUserAgents:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        refuse((f"{BUILT_IN}user_agents", {"patterns": ["^monitor/", r"\bkiosk\b"]}))

    @pytest.mark.parametrize("user_agent", ["Monitor/7", "Mozilla/5.0 (KIOSK; Linux)"])
    def test_one_of_the_patterns_is_found(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) == "user_agent"

    @pytest.mark.parametrize("user_agent", ["My Monitor/7", "kiosks", "", "x" * 5000 + " kiosk"])
    def test_none_is(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) is None

    def test_no_user_agent_at_all(self):
        assert reason(RequestFactory().get("/")) is None


@pytest.mark.parametrize(
    ("header", "name"), [("DNT", "do_not_track"), ("Sec-GPC", "global_privacy_control")]
)
@pytest.mark.parametrize(("value", "is_refused"), [("1", True), ("0", False), ("", False)])
def test_who_asks_not_to_be_tracked(refuse, header, name, value, is_refused):
    refuse(f"{BUILT_IN}{name}")

    assert reason(get(**{header: value})) == (name if is_refused else None)
    assert reason(get()) is None
