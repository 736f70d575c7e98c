"""Class-based views that count."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.recording import record_page_hit


class HitCountDetailMixin:
    """
    Counts a hit on the object of a DetailView, without a template tag.

    Goes before DetailView in the bases. The template gets ``hit``, a Hit, to show
    ``{{ hit.total }}``. A ``{% hit_count object %}`` on the same page counts nothing more.
    """

    hit_counter = DEFAULT_COUNTER
    request: HttpRequest
    object: Model

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Record the hit once the object is there, and add it to the context."""
        hit = record_page_hit(self.request, self.object, counter=self.hit_counter)
        context: dict[str, Any] = super().get_context_data(hit=hit, **kwargs)  # type: ignore[misc]
        return context
