"""Which pages may send hits: those of this site, and of HITCOUNT["BEACON_ORIGINS"]."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest

from django_hitcount.conf import get_config


def named_origin(request: HttpRequest) -> str | None:
    """Return the origin of a request if HITCOUNT["BEACON_ORIGINS"] names it, or None."""
    origin: str = request.META.get("HTTP_ORIGIN", "")
    return origin if origin in get_config().beacon_origins else None


def is_foreign(request: HttpRequest) -> bool:
    """
    Return whether a page of another site sends the request, or no page at all.

    Browsers say where a request comes from, in Sec-Fetch-Site and Origin, and pages cannot change
    that. A client that is no browser can send what it likes. If neither header is there, as with
    the images of old browsers, the request is not foreign.
    """
    if request.META.get("HTTP_SEC_FETCH_MODE") == "navigate":
        return True  # Somebody has opened the address itself.
    if named_origin(request):
        return False
    if site := request.META.get("HTTP_SEC_FETCH_SITE"):
        return bool(site != "same-origin")
    origin = request.META.get("HTTP_ORIGIN")
    # Without the scheme: behind a proxy, Django may not know that the page came by https.
    return origin is not None and urlsplit(origin).netloc != request.get_host()
