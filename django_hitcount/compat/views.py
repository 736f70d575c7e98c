"""The views of django-hitcount: one takes hits by POST, and one counts in a DetailView."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseForbidden,
    JsonResponse,
)
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import DetailView, View

from django_hitcount.beacon import count_tokens, read_token, refused_tokens
from django_hitcount.compat.models import HitCount
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.hits import BAD_TOKEN, OTHER_SITE, Hit
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.page_numbers import page_number
from django_hitcount.recording import record_hit
from django_hitcount.views import is_foreign

logger = logging.getLogger("django_hitcount")


class UpdateHitCountResponse(NamedTuple):
    """Whether a hit was counted, and why not."""

    hit_counted: bool
    hit_message: str


def _describe(hit: Hit) -> UpdateHitCountResponse:
    message = "Hit counted" if hit.counted else f"Not counted: {hit.refusal}"
    return UpdateHitCountResponse(hit.counted, message)


class HitCountMixin:
    """Counts a hit on the object of a HitCount. Costs what record_hit() costs."""

    @classmethod
    def hit_count(cls, request: HttpRequest, hitcount: HitCount) -> UpdateHitCountResponse:
        return _describe(record_hit(hitcount.content_object, request, once_per_request=True))


@method_decorator(
    [csrf_exempt, never_cache, login_not_required, transaction.non_atomic_requests], "dispatch"
)
class HitCountJSONView(View, HitCountMixin):
    """
    Counts the hit of a page that sends its token as ``hitcountPK``.

    Needs no CSRF token, for the reasons that views.py gives for cached pages. Costs what
    beacon.count_tokens() costs.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.headers.get("x-requested-with") != "XMLHttpRequest":
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse({"success": False, "error_message": "Hits counted via POST only."})

    def post(self, request: HttpRequest) -> HttpResponse:
        if is_foreign(request):
            refused_tokens.add(OTHER_SITE, 1)
            return HttpResponseForbidden()
        token = read_token(request.POST.get("hitcountPK", ""))
        if token is None:
            refused_tokens.add(BAD_TOKEN, 1)
            return HttpResponseBadRequest("HitCount object_pk not working")
        try:
            hits = count_tokens(request, [token], None)
        except DATABASE_ERRORS as exc:
            logger.error("The hit of a page is not counted: %s", exc)
            return HttpResponse(status=503)
        if not hits:  # The object was deleted, or the token only shows its number.
            return HttpResponseBadRequest("HitCount object_pk not working")
        return JsonResponse(_describe(hits[0])._asdict())


class HitCountDetailView(DetailView, HitCountMixin):  # type: ignore[type-arg]
    """
    A DetailView that puts ``hitcount`` into the context: ``pk``, a token, and ``total_hits``.

    With ``count_hit``, also counts the hit, and adds ``hit_counted`` and ``hit_message``.
    """

    count_hit = False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        hitcount: dict[str, Any] = {"pk": HitCount(self.object).pk}
        if self.count_hit:
            hit = record_hit(self.object, self.request, once_per_request=True)
            hitcount |= _describe(hit)._asdict()
            hitcount["total_hits"] = hit.total
        else:
            total = page_number(self.request, self.object, counter=DEFAULT_COUNTER)
            hitcount["total_hits"] = total
        return {**context, "hitcount": hitcount}
