"""A site whose pages are counted."""

from __future__ import annotations

from functools import partial

import pytest
from django.test import Client

from django_hitcount.pages import paths
from tests.browsers import BROWSER
from tests.pages import site

MIDDLEWARE = "django_hitcount.pages.middleware.PageHitsMiddleware"


@pytest.fixture(autouse=True)
def no_test_meets_the_full_hours_of_another() -> None:
    paths._full.clear()


@pytest.fixture
def counted(buffer, settings):
    """The site, with each of the buffers. Sets options of PAGES and of the counter "views"."""
    settings.ROOT_URLCONF = site.__name__
    settings.MIDDLEWARE = [MIDDLEWARE, *settings.MIDDLEWARE]
    return partial(_set, settings)


@pytest.fixture
def browser(counted):
    return Client(headers=BROWSER)


def _set(settings, *, views=None, counters=None, **pages: object) -> None:
    more = {"COUNTERS": {"views": views or {}, **(counters or {})}, "PAGES": pages}
    settings.HITCOUNT = {**settings.HITCOUNT, **more}
