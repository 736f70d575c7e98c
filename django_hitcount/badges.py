"""
The hits or visitors of an object as an image or as JSON, for pages of other sites. Off by default:
include these addresses under any prefix to turn them on::

    path("badges/", include("django_hitcount.badges")),

Their token is one that shows a number, see beacon_token(). Who has it may read that number, and
nothing else.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.urls import path
from django.utils import translation
from django.utils.cache import get_conditional_response, patch_cache_control, set_response_etag
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from django_hitcount.beacon import HIT, VISITORS, read_shown, read_token
from django_hitcount.numbers import errors_logged
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.templatetags.hitcount import format_short

MAX_AGE_SECONDS = 300
"""How long browsers and proxies may show a badge without asking again."""

LONGEST_LABEL = 40

LETTER_WIDTH, PADDING = 7, 6
"""In pixels. A text is stretched to its width, whatever font there is."""

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"\
 aria-label="{label}: {text}">
<rect width="{width}" height="20" rx="3" fill="#1f5aa8"/>
<path d="M3 0h{left}v20h-{left}a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_x}" y="14" textLength="{label_width}" lengthAdjust="spacingAndGlyphs">{label}</text>
<text x="{text_x}" y="14" textLength="{text_width}" lengthAdjust="spacingAndGlyphs">{text}</text>
</g>
</svg>
"""


@login_not_required
@transaction.non_atomic_requests
@require_safe
def show_badge(request: HttpRequest, token: str, kind: str) -> HttpResponse:
    """
    Return the number that a token shows, as SVG or as JSON.

    ``?label=`` replaces the name of the counter. Answers 404 to a token that is not ours or counts
    a hit, without a query; 503 if the number cannot be read now; and 304 if it has not changed.

    Costs what get_hits() or get_visitors() costs.
    """
    found = read_token(token)
    if found is None or found.purpose == HIT:
        return HttpResponseNotFound()
    number = None
    with CurrentPage(request), errors_logged("The number of a badge cannot be read"):
        number = read_shown({token: found})[token]
    if number is None:
        return HttpResponse(status=503)
    name = VISITORS if found.purpose == VISITORS else found.counter.replace("_", " ")
    label = request.GET.get("label", "")[:LONGEST_LABEL]
    label = label if label and label.isprintable() else name
    response: HttpResponse = (
        JsonResponse({"label": label, "number": number})
        if kind == "json"
        else HttpResponse(draw_badge(label, number), content_type="image/svg+xml")
    )
    set_response_etag(response)
    patch_cache_control(response, public=True, max_age=MAX_AGE_SECONDS)
    etag = response["ETag"]
    answer = get_conditional_response(request, etag=etag, response=response) or response
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


def draw_badge(label: str, number: int) -> str:
    """Draw a badge. Not in the language of who asks: a proxy gives it to others, too."""
    with translation.override(settings.LANGUAGE_CODE):
        text = format_short(number)
    label_width, text_width = LETTER_WIDTH * len(label), LETTER_WIDTH * len(text)
    middle = label_width + 2 * PADDING
    return format_html(
        BADGE,
        label=label,
        text=text,
        label_width=label_width,
        text_width=text_width,
        label_x=PADDING,
        text_x=middle + PADDING,
        left=middle - 3,
        width=middle + text_width + 2 * PADDING,
    )


app_name = "django_hitcount_badges"

urlpatterns = [
    path("<str:token>.svg", show_badge, {"kind": "svg"}, name="svg"),
    path("<str:token>.json", show_badge, {"kind": "json"}, name="json"),
]
