"""Report refused hits: on the console, and by a signal."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.outcomes import UNAVAILABLE
from django_hitcount.refusals.registry import reasons_by_name
from django_hitcount.signals import hit_refused

logger = logging.getLogger("django_hitcount")


def report_refused(
    objs: Sequence[Model],
    hits: Sequence[NewHits],
    refusals: Sequence[str | None],
    *,
    counter: str,
    request: HttpRequest | None,
) -> None:
    """
    Report which hits were refused once they have been recorded; ``refusals`` has the reasons.

    Logs those that nothing refused before the buffer did, and sends hit_refused for all but those
    that are lost.
    """
    found = zip(hits, refusals, strict=True)
    log_refused((refusal for hit, refusal in found if not hit.refusal), counter)
    if not hit_refused.receivers:
        return
    for obj, refusal in zip(objs, refusals, strict=True):
        if refusal and refusal != UNAVAILABLE:
            hit_refused.send_robust(
                obj._meta.model, obj=obj, counter=counter, refusal=refusal, request=request
            )


def log_refused(
    refusals: Iterable[str | None], counter: str, request: HttpRequest | None = None
) -> None:
    """
    If DEBUG is True, log how many hits are refused, and why: a line for each reason.

    The lines are warnings, since Django's default LOGGING shows the warnings of all loggers.
    """
    if not settings.DEBUG:
        return
    known = reasons_by_name()
    for name, count in Counter(filter(None, refusals)).items():
        logger.warning(
            "%d of %r not counted%s, refusal %r: %s",
            count,
            counter,
            _describe_sender(request),
            name,
            known.get(name, ""),
        )


def _describe_sender(request: HttpRequest | None) -> str:
    if request is None:
        return ""
    user_agent = request.META.get("HTTP_USER_AGENT", "")[:_SHOWN_CHARACTERS]
    return f" ({request.method} {request.path}, User-Agent {user_agent!r})"


_SHOWN_CHARACTERS = 200
"""Characters of a user agent that are logged: enough to recognise a bot."""
