"""A mixin for views that show one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rest_framework.request import Request

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.recording import record_hit
from django_hitcount.refusals.registry import GivenRefusal


class HitCountRetrieveMixin:
    """
    Counts a hit on the object that a view or a viewset retrieves::

        class ArticleViewSet(HitCountRetrieveMixin, viewsets.ModelViewSet): ...

    List it before the class of DRF. Counts the object that get_object() returns, once per request,
    and not in lists, updates and actions of your own. The answer includes the hit. Costs what
    record_hit() costs.
    """

    hit_counter = DEFAULT_COUNTER
    """The counter of the hit: the name of a counter in HITCOUNT["COUNTERS"]."""

    hit_refusals: Sequence[GivenRefusal] | None = None
    """The refusals of the hit, in place of those of the counter. See record_hit()."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let get_object() count if the request retrieves, also where a view has its own."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        action = "retrieve" if request.method in {"GET", "HEAD"} else ""
        if getattr(self, "action", action) == "retrieve":
            vars(self)["get_object"] = partial(self._get_counted, self.get_object, request)  # type: ignore[attr-defined]

    def _get_counted(self, get_object: Callable[[], Any], request: Request) -> Any:
        """Return the object, and count a hit on it. Its permissions are met."""
        obj = get_object()
        record_hit(
            obj,
            request._request,
            counter=self.hit_counter,
            refusals=self.hit_refusals,
            once_per_request=True,
        )
        return obj
