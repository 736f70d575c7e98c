"""The system check of pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning

MIDDLEWARE = "django_hitcount.pages.middleware.PageHitsMiddleware"

CACHES = (
    "django.middleware.cache.FetchFromCacheMiddleware",
    "django.middleware.cache.CacheMiddleware",
)
"""Those that answer with a cached page, which no middleware after them sees."""


def check_middleware(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """W010: the middleware is missing, or comes after the site cache."""
    installed = [*settings.MIDDLEWARE]
    if MIDDLEWARE not in installed:
        yield CheckWarning(
            "django_hitcount.pages is installed, but its middleware is not, so no pages are "
            "counted.",
            hint=f"Put {MIDDLEWARE!r} first into MIDDLEWARE.",
            id="django_hitcount.W010",
        )
        return
    before = installed[: installed.index(MIDDLEWARE)]
    if found := [name for name in CACHES if name in before]:
        yield CheckWarning(
            f"PageHitsMiddleware comes after {found[0]}, so pages from the cache are not counted.",
            hint=f"Put {MIDDLEWARE!r} first into MIDDLEWARE, before UpdateCacheMiddleware.",
            id="django_hitcount.W010",
        )
