"""Count hits in class-based views."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.recording import record_page_hit

__all__ = ["HitCountDetailMixin"]


class HitCountDetailMixin:
    """
    Counts a hit on the object of a DetailView, without a template tag::

        class ArticleView(HitCountDetailMixin, DetailView):
            model = Article

    List it before DetailView in the bases. The template gets ``hit``, a Hit, and can show
    ``{{ hit.total }}``. If ``{% hit_count object %}`` is on the same page, the hit still counts
    once. Costs what record_page_hit() costs.
    """

    hit_counter = DEFAULT_COUNTER
    """The counter of the hit: the name of a counter in HITCOUNT["COUNTERS"]."""

    request: HttpRequest
    object: Model

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Record the hit and add it to the context. The view has found the object by now."""
        hit = record_page_hit(self.request, self.object, counter=self.hit_counter)
        context: dict[str, Any] = super().get_context_data(hit=hit, **kwargs)  # type: ignore[misc]
        return context
