"""
Count hits in views, and take those that cached pages send.

The views of cached pages are count_views(), for the script, and count_image() without it. They need
no CSRF token: a forged request can do no more than a page view can, it counts a hit. They read the
cookies of the site, as the page itself would, and set none.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from inspect import isawaitable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.db import transaction
from django.db.models import Model
from django.http import (
    Http404,
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

from django_hitcount.beacon import HIT, count_tokens, read_shown, read_token, refused_tokens
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.hits import BAD_TOKEN, OTHER_SITE
from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.downloads import acount_download, count_download
from django_hitcount.exceptions import TransactionLost
from django_hitcount.numbers import errors_logged
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.recording import record_hit
from django_hitcount.refusals.registry import GivenRefusal, check_refusals

__all__ = ["HitCountDetailMixin", "acount_download", "count_download", "counts"]

ViewT = TypeVar("ViewT", bound=Callable[..., Any])

ANSWERS_THAT_COUNT = {200, 304}
"""Statuses of a view that has shown something."""

LARGEST_BODY = 32 * 1024
"""Bytes of a request. The script sends more tokens in several requests."""

MOST_TOKENS = 200
"""Tokens of a request, those to count and those to show."""

GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""A transparent image of one pixel."""

is_view_id = re.compile(r"[A-Za-z0-9-]{8,64}").fullmatch

logger = logging.getLogger("django_hitcount")


class HitCountDetailMixin:
    """
    Counts a hit on the object of a DetailView, without a template tag::

        class ArticleView(HitCountDetailMixin, DetailView):
            model = Article

    List it before DetailView in the bases. The template gets ``hit``, a Hit, and can show
    ``{{ hit.total|default_if_none:"" }}``. If ``{% hit_count object %}`` is on the same page, the
    hit still counts once. Costs what record_hit() costs.
    """

    hit_counter = DEFAULT_COUNTER
    """The counter of the hit: the name of a counter in HITCOUNT["COUNTERS"]."""

    request: HttpRequest
    object: Model

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Record the hit and add it to the context. The view has found the object by now."""
        hit = record_hit(self.object, self.request, counter=self.hit_counter, once_per_request=True)
        context: dict[str, Any] = super().get_context_data(hit=hit, **kwargs)  # type: ignore[misc]
        return context


def counts(
    find: Callable[..., Any],
    *,
    counter: str = DEFAULT_COUNTER,
    refusals: Iterable[GivenRefusal] | None = None,
) -> Callable[[ViewT], ViewT]:
    """
    Decorate a view, sync or async, to count a hit on an object after it has answered 200 or 304::

        @counts(lambda request, slug: Article.objects.get(slug=slug))
        def article_detail(request, slug): ...

    If ``{% hit_count %}`` is on the page, the hit still counts once. Above ``@cache_page``, it also
    counts the pages that come from Django's cache.

    Args:
        find: a function that gets the arguments of the view, and returns the object, or None to
            count nothing. If it finds no object, nothing is counted, either; any other exception is
            logged. It may be async, too.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        refusals: see record_hit().

    For a class, use method_decorator(): its ``dispatch()`` may be async, too. Costs what ``find``
    and record_hit() cost. Raises InvalidArgument if ``refusals`` are invalid.
    """
    options: dict[str, Any] = {"counter": counter, "once_per_request": True}
    options["refusals"] = None if refusals is None else check_refusals(refusals)

    def count(response: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if getattr(response, "status_code", None) in ANSWERS_THAT_COUNT:
            obj = _find(find, request, *args, **kwargs)
            if obj is not None:
                record_hit(obj, request, **options)
        return response

    async def acount(response: Awaitable[Any], *args: Any, **kwargs: Any) -> Any:
        return await sync_to_async(count)(await response, *args, **kwargs)

    def decorate(view: ViewT) -> ViewT:
        @wraps(view)
        def counting(*args: Any, **kwargs: Any) -> Any:
            response = view(*args, **kwargs)
            # Not iscoroutinefunction(view): dispatch() of an async view is none.
            return (acount if isawaitable(response) else count)(response, *args, **kwargs)

        if iscoroutinefunction(view):
            markcoroutinefunction(counting)
        return counting  # type: ignore[return-value]

    return decorate


def _find(find: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """
    Return what ``find`` finds, or None.

    Its errors do not break the page, and its queries do not break the transaction of the page.
    """
    try:
        with protect_transactions():
            found = find(*args, **kwargs)
            return async_to_sync(_wait_for)(found) if isawaitable(found) else found
    except (ObjectDoesNotExist, Http404):
        return None
    except TransactionLost:
        raise
    except Exception:
        logger.exception("A hit is not counted: %r failed", find)
        return None


async def _wait_for(found: Awaitable[Any]) -> Any:
    return await found


@csrf_exempt
@never_cache
@login_not_required
@transaction.non_atomic_requests
@require_POST
def count_views(request: HttpRequest) -> HttpResponse:
    """
    Count the hits of a cached page, and return the numbers that it shows, by token.

    Answers 403 to pages of other sites, 400 if the request is malformed or too large, and 503 if
    the database is away; the page then tries again. Nothing is counted then. A number that cannot
    be read is None.

    With Redis, costs a query per model to find the objects, a round trip for the id of the view and
    the limit of its address, one to record the hits of each counter, and what read_numbers() costs
    for the numbers. Tokens that are not ours cost nothing.
    """
    if is_foreign(request):
        refused_tokens.add(OTHER_SITE, 1)
        return HttpResponseForbidden()
    try:
        view_id, hit, show = read_body(request)
    except (ValueError, RecursionError, RequestDataTooBig, UnreadablePostError) as exc:
        return HttpResponseBadRequest(str(exc), content_type="text/plain")
    tokens = {text: read_token(text) for text in (*hit, *show)}
    found = {text: token for text, token in tokens.items() if token}
    if len(found) < len(tokens):
        refused_tokens.add(BAD_TOKEN, len(tokens) - len(found))
    with CurrentPage(request):
        try:
            count_tokens(request, [found[text] for text in hit if text in found], view_id)
        except DATABASE_ERRORS as exc:
            logger.error("The hits of a cached page are not counted: %s", exc)
            return HttpResponse(status=503)
        numbers = dict.fromkeys(show)
        # The hits are counted, so the page must not send them again.
        with errors_logged("The numbers of a cached page cannot be read"):
            numbers = read_shown({text: found[text] for text in show if text in found})
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
        with errors_logged("The hit of a cached page is not counted"):
            count_tokens(request, [found], None)
    return HttpResponse(GIF, content_type="image/gif")


def read_body(request: HttpRequest) -> tuple[str, list[str], list[str]]:
    """
    Return what a page has sent as JSON: the id of its view, the tokens to count, those to show.

    Raises ValueError if that is malformed or too large.
    """
    if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
        raise ValueError("too large")
    if len(request.body) > LARGEST_BODY:
        raise ValueError("too large")
    value = json.loads(request.body)
    if not isinstance(value, dict) or value.keys() != {"id", "hit", "show"}:
        raise ValueError("not an object with the keys id, hit and show")
    hit, show, view_id = value["hit"], value["show"], value["id"]
    if not (isinstance(hit, list) and isinstance(show, list) and isinstance(view_id, str)):
        raise ValueError("id is not a text, or hit or show not a list")  # noqa: TRY004
    tokens = [*hit, *show]
    if len(tokens) > MOST_TOKENS or not all(isinstance(text, str) for text in tokens):
        raise ValueError(f"more than {MOST_TOKENS} tokens, or others than texts")
    if not is_view_id(view_id):
        raise ValueError("id has other than 8 to 64 letters, digits and dashes")
    return view_id, hit, show


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
