"""
Count downloads: one hit for each file that somebody fetches, in however many requests.

The request alone decides, and not what was sent. Where a front server sends the file, Django does
not see what happens after it: neither a 206 for a part, nor a 304 for a file that has not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import parse_http_date_safe

from django_hitcount.recording import record_hit
from django_hitcount.refusals.registry import GivenRefusal
from django_hitcount.twins import async_twin

ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)

GIVES_THE_FILE = {200, 206, 302, 303, 307}
"""Statuses of answers that send a file, or lead to it."""

PROBE_BYTES = 2
"""Safari asks for two bytes, and others for one, to learn whether a server knows ranges."""

ENDLESS = 10**18
"""The size of a range without an end: more than any file has."""

_RANGES = re.compile(r"\s*bytes\s*=(.*)", re.IGNORECASE | re.DOTALL)

# No file has more bytes than 18 digits can say. Blanks are stripped before: two optional groups of
# them, with nothing between, would take quadratic time for a header of blanks.
_RANGE = re.compile(r"(\d{0,18})-(\d{0,18})")


def count_download(
    obj: Model,
    request: HttpRequest,
    response: ResponseT,
    *,
    counter: str = "downloads",
    refusals: Iterable[GivenRefusal] | None = None,
) -> ResponseT:
    """
    Count a hit on ``obj`` if ``request`` begins a download. Return ``response``::

        def download(request, pk):
            article = get_object_or_404(Article, pk=pk)
            return count_download(article, request, FileResponse(article.file.open()))

    A request begins a download if it asks for the first byte of the file, and for more than two
    bytes: without the header Range, or with one such as ``bytes=0-`` or ``bytes=0-65535``. Other
    requests are neither counted nor refused: later parts, a suffix (``bytes=-500``), the one or two
    bytes that ask whether a server knows ranges, and HEAD. Neither is a request that asks whether
    its copy is still current (If-None-Match, If-Modified-Since), unless the ETag or the
    Last-Modified of ``response`` says that it is not.

    Args:
        response: the answer that sends the file or leads to it: a FileResponse, an empty one with
            X-Accel-Redirect or X-Sendfile, a redirect. Other answers than 200, 206, 302, 303 and
            307 are no download.
        counter: the name of a counter, which HITCOUNT["COUNTERS"] must declare.
        refusals: see record_hit(). By default ``curl`` and other programs are refused as bots.

    Raises what record_hit() raises, and costs the same; nothing if it does not count.
    """
    if begins_download(request, response):
        record_hit(obj, request, counter=counter, refusals=refusals)
    return response


def begins_download(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Return whether ``request`` begins to fetch the file that ``response`` sends or leads to."""
    if request.method == "HEAD" or response.status_code not in GIVES_THE_FILE:
        return False
    if request.method != "GET":
        return True  # Range and conditions have no meaning then.
    return has_first_part(request.META.get("HTTP_RANGE", "")) and not _has_copy(request, response)


def has_first_part(header: str) -> bool:
    """Return whether a Range includes the first byte and is no probe. Wrong ones mean the file."""
    if not (found := _RANGES.fullmatch(header)):
        return True
    is_first, size = False, 0
    for text in found[1].split(","):
        match = _RANGE.fullmatch(text.strip())
        if not match or not (match[1] or match[2]):
            return True
        first, last = match.groups()
        if first and last and int(last) < int(first):
            return True
        is_first |= first != "" and int(first) == 0
        size += int(last) - int(first or 1) + 1 if last else ENDLESS
    return is_first and size > PROBE_BYTES


def _has_copy(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Return whether the client has the file already, as far as that can be known."""
    etag = response.get("ETag")
    modified = parse_http_date_safe(response.get("Last-Modified", ""))
    if etag is None and "HTTP_IF_NONE_MATCH" in request.META:
        # A front server has told the client, and will compare. Files rarely change.
        since = parse_http_date_safe(request.META.get("HTTP_IF_MODIFIED_SINCE", ""))
        return not (modified and since and modified > since)
    if etag is None and modified is None:
        return "HTTP_IF_MODIFIED_SINCE" in request.META  # As above.
    return get_conditional_response(request, etag=etag, last_modified=modified) is not None


acount_download = async_twin(count_download)
"""See count_download()."""
