"""Which requests are views of the same page, and of which site."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings
from django.contrib import admin
from django.core.management import call_command
from django.test import Client, RequestFactory

from django_hitcount.conf import PATH_MAX_LENGTH
from django_hitcount.pages.models import Page, WholeSite
from django_hitcount.pages.paths import path_of
from django_hitcount.testing import override_hitcount
from tests.browsers import BROWSER
from tests.pages.site import counts
from tests.visiting import refused_today

SAME = {"strip_slash": True, "lower_case": True}


def path_under(options: dict[str, object], target: str) -> str | None:
    with override_hitcount(PAGES=options):
        return path_of(RequestFactory().get(target))


@pytest.mark.parametrize(
    ("options", "target", "path"),
    [
        ({}, "/", "/"),
        ({}, "/tea/?utm_source=x&page=2", "/tea/"),
        ({}, "/Tea", "/Tea"),
        ({}, "/tea///green//", "/tea/green/"),
        ({}, "/th%C3%A9/", "/thé/"),
        ({}, "/%ff/", "/%FF/"),
        ({}, "/a%00b", "/a%00b"),
        ({}, "/a%3Fb", "/a%3Fb"),
        (SAME, "/Tea/", "/tea"),
        (SAME, "/A%3FB%00", "/a%3Fb%00"),
        (SAME, "/tea//", "/tea"),
        (SAME, "/", "/"),
        ({"query": ["page", "q"]}, "/tea/?q=a%20b&x=1&page=2", "/tea/?page=2&q=a+b"),
        ({"query": ["page"]}, "/tea/?page=", "/tea/"),
        ({"query": ["q"]}, "/tea/?q=th%C3%A9", "/tea/?q=th%C3%A9"),
        ({}, "/admin/login/", None),
        ({}, "/admin", None),
        ({}, "/administration/", "/administration/"),
        ({"exclude": []}, "/admin/", "/admin/"),
        ({"exclude": ["/a"]}, "/abc", None),
        ({"exclude": ["/Api/"], **SAME}, "/aPi/x", None),
    ],
)
def test_path(options, target, path):
    assert path_under(options, target) == path


def test_path_of_slashes_alone_is_that_of_the_front_page():
    request = RequestFactory().get("/")
    request.path = "///"

    assert path_of(request) == "/"


def test_half_a_surrogate_pair_can_be_stored():
    request = RequestFactory().get("/")
    request.path = "/\ud800"

    assert path_of(request) == "/%3F"


@pytest.mark.parametrize(
    "target", ["/tea/", "/th%C3%A9/", "/a%3Fb/", "/tea/?page=2&q=a+b", "/a%20b"]
)
def test_address_of_a_page_leads_back_to_it(target):
    options = {"query": ["page", "q"]}
    path = path_under(options, target)

    assert path_under(options, Page(path=path).get_absolute_url()) == path
    assert Page(path=path).get_absolute_url() == target


@pytest.mark.parametrize(
    ("path", "text"),
    [("/thé/", "/thé/"), ("/\u202e", "/%E2%80%AE"), ("/a\r\nb", "/a%0D%0Ab"), ("/a b", "/a b")],
)
def test_what_cannot_be_seen_is_quoted(path, text):
    assert str(Page(path=path)) == text


@pytest.mark.django_db(transaction=True)
def test_paths_are_compared_byte_by_byte(browser):
    for path in ("/a", "/A", "/ä", "/a ", "/a%20"):
        browser.get(path)

    assert counts() == {"/a": 1, "/A": 1, "/ä": 1, "/a ": 2, "": 5}


@pytest.mark.django_db(transaction=True)
def test_path_that_is_too_long_counts_for_the_site(browser):
    longest = "/" + "ä" * (PATH_MAX_LENGTH - 1)
    for path in (longest, longest, f"{longest}b"):
        browser.get(path)

    assert counts() == {longest: 2, "": 3}
    assert refused_today() == {("views", "path_limit"): 1}


@pytest.fixture
def two_sites(counted, settings):
    settings.INSTALLED_APPS = [*django_settings.INSTALLED_APPS, "django.contrib.sites"]
    settings.ALLOWED_HOSTS = ["*"]
    from django.contrib.sites.models import Site  # The app has to be installed.

    call_command("migrate", "sites", verbosity=0)
    Site.objects.all().delete()
    yield [Site.objects.create(domain=f"{name}.example", name=name) for name in ("tea", "mate")]
    Site.objects.clear_cache()
    call_command("migrate", "sites", "zero", verbosity=0)
    if admin.site.is_registered(Site):  # It was found when its app was installed.
        admin.site.unregister(Site)


@pytest.mark.django_db(transaction=True)
def test_pages_are_those_of_the_current_site(two_sites):
    tea, mate = two_sites
    for host in ("tea.example", "mate.example", "mate.example", "other.example"):
        Client(headers=BROWSER).get("/", headers={"host": host})

    found = {(page.site_id, page.path): page.hits for page in Page.objects.all()}
    assert found == {(tea.pk, "/"): 1, (mate.pk, "/"): 2, (0, "/"): 1}
    assert WholeSite(mate.pk).hits == 2
    assert str(WholeSite(mate.pk)) == "The whole site: mate.example"
    assert str(WholeSite()) == "The whole site"
