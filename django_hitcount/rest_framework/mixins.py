"""A mixin for views that show one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.recording import record_hit
from django_hitcount.refusals.registry import GivenRefusal


class HitCountRetrieveMixin:
    """
    Counts a hit on the object that a view or a viewset retrieves::

        class ArticleViewSet(HitCountRetrieveMixin, viewsets.ModelViewSet): ...

    List it before the class of DRF. Counts once per request, and not in lists, updates and actions
    of your own. The answer includes the hit. Costs what record_hit() costs.
    """

    hit_counter = DEFAULT_COUNTER
    """The counter of the hit: the name of a counter in HITCOUNT["COUNTERS"]."""

    hit_refusals: Sequence[GivenRefusal] | None = None
    """The refusals of the hit, in place of those of the counter. See record_hit()."""

    request: Request
    _retrieves = False

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """Let get_object() count the object that it returns."""
        self._retrieves = True
        return super().retrieve(request, *args, **kwargs)  # type: ignore[misc]

    def get_object(self) -> Any:
        """Return the object, and count a hit on it if it is retrieved. Its permissions are met."""
        obj = super().get_object()  # type: ignore[misc]
        if self._retrieves:
            record_hit(
                obj,
                self.request._request,
                counter=self.hit_counter,
                refusals=self.hit_refusals,
                once_per_request=True,
            )
        return obj
