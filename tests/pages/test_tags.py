"""The tags show the numbers of the page that they are on, and of the site."""

from __future__ import annotations

import datetime

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from django.utils.translation import override

from django_hitcount import get_hits, record_hit
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument
from django_hitcount.pages.models import Page, WholeSite
from django_hitcount.pages.templatetags import hitcount_pages
from tests.pages.site import SHOWN

pytestmark = pytest.mark.django_db(transaction=True)


def render(source: str, request=None) -> str:
    return Template(source).render(Context({"request": request}))


def test_page_shows_what_was_before_its_own_view(browser):
    texts = [
        browser.get(path).content.decode() for path in ("/shown/", "/tea/", "/shown/", "/shown/")
    ]

    assert texts == ["0 0 0 0", "<p>tea</p>", "1 1 2 2", "2 2 3 3"]
    assert Page.objects.get(path="/shown/").hits == 3


def test_today_is_not_all_time(browser):
    browser.get("/shown/")
    record_hit(WholeSite(), at=datetime.date(2026, 1, 1), amount=5)

    assert browser.get("/shown/").content.decode() == "1 1 6 1"


def test_visitors(counted, browser):
    counted(views={"visitors": True})
    assert browser.get("/visitors/").content.decode() == "0 0"
    browser.get("/tea/", REMOTE_ADDR="203.0.113.7")
    browser.get("/tea/")

    assert browser.get("/visitors/").content.decode() == "1 2"


def test_different_browsers_of_the_site(counted, browser):
    counted(
        views={"visitors": True},
        counters={"browsers": {"visitors": True, "visitor_identity": ["browser"]}},
        site_counters=["browsers"],
    )
    for address in ("203.0.113.7", "203.0.113.8"):
        browser.get("/tea/", REMOTE_ADDR=address)
    browser.get("/shown/", headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"})
    browser.get("/tea/", headers={"User-Agent": "curl/8.0"})  # A bot.

    numbers = "{% site_hits days=1 %} {% site_visitors %} {% site_visitors counter='browsers' %}"
    text = render("{% load hitcount_pages %}" + numbers, RequestFactory().get("/"))
    assert text == "3 3 2"


def test_counter_that_counts_no_visitors_is_an_error(browser):
    with pytest.raises(InvalidArgument, match="does not count visitors"):
        browser.get("/visitors/")


@pytest.mark.parametrize("tag", ["page_hits", "site_hits", "page_visitors", "site_visitors"])
@pytest.mark.parametrize("name", ["", "nowhere"])
def test_counter_that_is_not_declared_is_an_error(counted, tag, name):
    """Also on a page that was never counted, and for a variable that is missing."""
    counted(views={"visitors": True})
    source = f"{{% load hitcount_pages %}}{{% {tag} counter='{name}' %}}"

    with pytest.raises(InvalidArgument, match=f"Unknown counter '{name}'"):
        render(source, RequestFactory().get("/"))


def test_page_that_is_excluded_shows_nothing_of_its_own(counted, browser):
    counted(exclude=["/shown/"])

    assert browser.get("/shown/").content.decode() == "0 0 0 0"


def test_without_a_request_they_print_nothing(counted):
    assert render(SHOWN) == "   "


def test_tags_record_nothing(counted):
    render(SHOWN, RequestFactory().get("/tea/"))

    assert not Page.objects.exists()
    assert get_hits(WholeSite()) == 0


def test_forged_request_gets_its_page(counted, browser, settings):
    counted(query=["page"])
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 1

    assert browser.get("/shown/?page=1&b=2").content.decode() == "  0 0"


def test_number_that_cannot_be_read_breaks_no_page(counted, browser, monkeypatch):
    def fail(*args: object) -> None:
        raise BufferUnavailable("away")

    monkeypatch.setattr(hitcount_pages, "find_page", fail)
    assert browser.get("/shown/").content.decode() == "  0 0"


def test_names_are_translated():
    with override("de"):
        assert str(WholeSite()) == "Die gesamte Website"
