"""The order of the middleware is checked."""

from __future__ import annotations

import pytest
from django.middleware.cache import FetchFromCacheMiddleware

from django_hitcount.pages.checks import check_middleware
from django_hitcount.pages.middleware import PageHitsMiddleware
from tests.pages.conftest import MIDDLEWARE

CACHE = "django.middleware.cache."
OWN = f"{__name__}.OwnMiddleware"


class OwnMiddleware(PageHitsMiddleware):
    """A project's own."""


class OwnCache(FetchFromCacheMiddleware):
    """A project's own."""


def function(get_response):
    """A middleware that is no class."""


@pytest.mark.parametrize(
    "middleware",
    [
        [MIDDLEWARE],
        [f"{__name__}.function", "no.such.Middleware", OWN, f"{__name__}.OwnCache"],
        (MIDDLEWARE, f"{CACHE}UpdateCacheMiddleware", f"{CACHE}FetchFromCacheMiddleware"),
        [f"{CACHE}UpdateCacheMiddleware", MIDDLEWARE, f"{CACHE}FetchFromCacheMiddleware"],
    ],
)
def test_order_that_counts_all(settings, middleware):
    settings.MIDDLEWARE = middleware

    assert [*check_middleware(None)] == []


@pytest.mark.parametrize(
    ("middleware", "message"),
    [
        ([], "its middleware is not"),
        ([f"{CACHE}CacheMiddleware", MIDDLEWARE], "comes after django.middleware.cache.CacheM"),
        ([f"{__name__}.OwnCache", OWN], f"{OWN} comes after {__name__}.OwnCache"),
        ([f"{CACHE}FetchFromCacheMiddleware", MIDDLEWARE], "pages from the cache are not counted"),
    ],
)
def test_order_that_does_not(settings, middleware, message):
    settings.MIDDLEWARE = middleware
    (found,) = check_middleware(None)

    assert found.id == "django_hitcount.W010"
    assert message in found.msg
    assert (OWN if OWN in middleware else MIDDLEWARE) in str(found.hint)
