"""
The two views that cached pages call: count_views() for the script, count_image() without it.

They need no CSRF token: a forged request can do no more than a page view can, it counts a hit. They
read the cookies of the site, as the page itself would, and set none.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64decode
from typing import NamedTuple

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseForbidden,
    JsonResponse,
    UnreadablePostError,
)
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from django_hitcount.beacon.counting import count_tokens, read_shown
from django_hitcount.beacon.origins import is_foreign, named_origin
from django_hitcount.beacon.refused import refused_tokens
from django_hitcount.beacon.tokens import HIT, read_token
from django_hitcount.counters.hits import BAD_TOKEN, OTHER_SITE
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.outages.waits import CurrentPage

LARGEST_BODY = 32 * 1024
"""Bytes of a request. The script sends more tokens in several requests."""

MOST_TOKENS = 200
"""Tokens of a request, those to count and those to show."""

GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""A transparent image of one pixel."""

is_view_id = re.compile(r"[A-Za-z0-9-]{8,64}").fullmatch

logger = logging.getLogger("django_hitcount")


class Body(NamedTuple):
    """What a page sends: JSON, as text."""

    id: str
    hit: list[str]
    show: list[str]


@csrf_exempt
@never_cache
@login_not_required
@transaction.non_atomic_requests
@require_POST
def count_views(request: HttpRequest) -> HttpResponse:
    """
    Count the hits of a cached page, and return the numbers that it shows, by token.

    Answers 403 to pages of other sites, 400 if the request is malformed or too large, and 503 if
    the database is away; the page then tries again. Nothing is counted then.

    With Redis, costs a query per model to find the objects, a round trip for the id of the view and
    the limit of its address, one to record the hits of each counter, and what read_numbers() costs
    for the numbers. Tokens that are not ours cost nothing.
    """
    if is_foreign(request):
        refused_tokens.add(OTHER_SITE, 1)
        return HttpResponseForbidden()
    try:
        body = read_body(request)
    except (ValueError, RecursionError, RequestDataTooBig, UnreadablePostError):
        return HttpResponseBadRequest()
    tokens = {text: read_token(text) for text in (*body.hit, *body.show)}
    found = {text: token for text, token in tokens.items() if token}
    if len(found) < len(tokens):
        refused_tokens.add(BAD_TOKEN, len(tokens) - len(found))
    with CurrentPage(request):
        try:
            to_count = [found[text] for text in dict.fromkeys(body.hit) if text in found]
            count_tokens(request, [of for of in to_count if of.purpose == HIT], body.id)
            numbers = read_shown({text: found[text] for text in body.show if text in found})
        except DATABASE_ERRORS as exc:
            logger.error("The hits of a cached page are not counted: %s", exc)
            return HttpResponse(status=503)
    response = JsonResponse({"numbers": numbers})
    if origin := named_origin(request):
        response["Access-Control-Allow-Origin"] = origin
        patch_vary_headers(response, ["Origin"])
    return response


@never_cache
@login_not_required
@transaction.non_atomic_requests
@require_GET
def count_image(request: HttpRequest, token: str) -> HttpResponse:
    """
    Count the hit of a cached page whose reader has no JavaScript. Returns an image of one pixel.

    Costs what count_views() costs for one token.
    """
    if is_foreign(request):
        refused_tokens.add(OTHER_SITE, 1)
    elif (found := read_token(token)) is None or found.purpose != HIT:
        refused_tokens.add(BAD_TOKEN, 1)
    else:
        try:
            count_tokens(request, [found], None)
        except DATABASE_ERRORS as exc:
            logger.error("The hit of a cached page is not counted: %s", exc)
    return HttpResponse(GIF, content_type="image/gif")


def read_body(request: HttpRequest) -> Body:
    """Return what a page has sent. Raises ValueError if that is malformed or too large."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
        raise ValueError("too large")
    if len(request.body) > LARGEST_BODY:
        raise ValueError("too large")
    value = json.loads(request.body)
    if not isinstance(value, dict) or value.keys() != {*Body._fields}:
        raise ValueError("not what the script sends")
    hit, show, view_id = value["hit"], value["show"], value["id"]
    if not (isinstance(hit, list) and isinstance(show, list) and isinstance(view_id, str)):
        raise ValueError("not of these types")  # noqa: TRY004
    tokens = [*hit, *show]
    if len(tokens) > MOST_TOKENS or not all(isinstance(text, str) for text in tokens):
        raise ValueError("too many tokens, or others than texts")
    if not is_view_id(view_id):
        raise ValueError("no id of a view")
    return Body(view_id, hit, show)
