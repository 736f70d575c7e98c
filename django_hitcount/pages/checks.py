"""The system check of pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning

from django_hitcount.conf import import_dotted_path

MIDDLEWARE = "django_hitcount.pages.middleware.PageHitsMiddleware"

CACHE = "django.middleware.cache.FetchFromCacheMiddleware"
"""It and its subclasses answer with a cached page, which no middleware after them sees."""


def check_middleware(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """W010: the middleware is missing, or comes after the site cache."""
    places = _places_of(MIDDLEWARE)
    if not places:
        yield CheckWarning(
            "django_hitcount.pages is installed, but its middleware is not, so no pages are "
            "counted.",
            hint=f"Put {MIDDLEWARE!r} first into MIDDLEWARE.",
            id="django_hitcount.W010",
        )
        return
    caches = _places_of(CACHE)
    if caches and caches[0] < places[0]:
        own, cache = settings.MIDDLEWARE[places[0]], settings.MIDDLEWARE[caches[0]]
        yield CheckWarning(
            f"{own} comes after {cache}, so pages from the cache are not counted.",
            hint=f"Put {own!r} first into MIDDLEWARE, before UpdateCacheMiddleware.",
            id="django_hitcount.W010",
        )


def _places_of(path: str) -> list[int]:
    """Return the places in MIDDLEWARE of a class and its subclasses."""
    base, places = import_dotted_path(path), list[int]()
    for place, name in enumerate(settings.MIDDLEWARE):
        with suppress(ImportError):  # Django says so when it starts to serve.
            found = import_dotted_path(name)
            if isinstance(found, type) and issubclass(found, base):
                places.append(place)
    return places
