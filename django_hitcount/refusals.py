"""Why a hit is not counted."""

from __future__ import annotations

from django.http import HttpRequest

METHOD = "method"
"""The request is not a GET: nobody looks at the answer to a HEAD or a POST."""

NO_REQUEST = "no_request"
"""A page is rendered without a request, so that nobody looks at it."""

UNAVAILABLE = "unavailable"
"""Neither the buffer nor the database takes hits."""


def refusal_of(request: HttpRequest | None) -> str | None:
    """The reason to refuse the hit of ``request``, or None to count it."""
    if request is not None and request.method != "GET":
        return METHOD
    return None
