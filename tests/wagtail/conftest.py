from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from tests.browsers import BROWSER

if "wagtail" not in settings.INSTALLED_APPS:
    collect_ignore_glob = ["*"]  # The tox environment "wagtail" runs them.


@pytest.fixture
def home():
    """The root of a site that is served."""
    from wagtail.models import Locale, Page, Site

    from tests.wagtail.bakery.models import HomePage

    Page.objects.all().delete()  # What Wagtail's migrations made is there for the first test only.
    Site.objects.all().delete()
    Locale.objects.get_or_create(language_code="en")
    root = Page.add_root(title="Root", slug="root")
    home = root.add_child(instance=HomePage(title="Bakery", slug="home"))
    Site.objects.create(hostname="testserver", root_page=home, is_default_site=True)
    yield home
    Site.clear_site_root_paths_cache()


@pytest.fixture
def recipe(home):
    """A published page."""
    from tests.wagtail.bakery.models import RecipePage

    return home.add_child(instance=RecipePage(title="Bread", slug="bread"))


@pytest.fixture
def visitor() -> Client:
    return Client(headers=BROWSER)


@pytest.fixture
def editor(home) -> Client:
    """The browser of a user who is logged in to Wagtail's admin."""
    from tests.wagtail.cooks.models import Cook

    Cook.objects.create_superuser("cook", password="bread")
    client = Client(headers=BROWSER)
    assert client.login(username="cook", password="bread")
    return client
