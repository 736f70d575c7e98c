"""
How the days of an access log reach the site in a replay.

Each request carries its moment in a header. The site believes it only in a replay, and only if it
is signed with the site's SECRET_KEY.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from django_hitcount import record_hit

HEADER = "X-Replayed-At"
SIGNER = signing.Signer(salt="demo.replayed_days")


def headers_of(moment: datetime) -> dict[str, str]:
    return {HEADER: SIGNER.sign(moment.isoformat())}


def read_moment(request: HttpRequest) -> datetime | None:
    """The moment of the header; None without one, or if it is forged."""
    try:
        return datetime.fromisoformat(SIGNER.unsign(request.headers.get(HEADER, "")))
    except signing.BadSignature:
        return None


class RecordOnDaysOfLog:
    """Middleware that records a replayed hit on the day that the log has for it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.visited_at = read_moment(request)
        return self.get_response(request)

    def process_template_response(
        self, request: HttpRequest, response: TemplateResponse
    ) -> TemplateResponse:
        """Before the template is rendered: {% hit_count %} then finds that the hit is recorded."""
        shown = response.context_data.get("article") or response.context_data.get("front")
        if shown and request.visited_at:
            record_hit(shown, request, at=request.visited_at)
        return response
