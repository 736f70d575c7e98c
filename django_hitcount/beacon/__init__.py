"""
The beacon: pages that a cache serves to everybody send their hits themselves.

Here is what such a page gets from ``{% hit_beacon %}``. A token names what the page may count, or
what it may show, signed by this site. It has no time limit, and the same object always has the same
token. So a page may be cached for as long as its site likes, and equal pages stay equal.

What the page sends goes to the views; counting.py counts it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signing import BadSignature, Signer
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from django_hitcount import conf
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import last_days
from django_hitcount.counters.keys import valid_visitor_counter
from django_hitcount.counters.primary_keys import object_id_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.refusals.registry import HitContext, find_refusal

SALT = "django_hitcount.beacon"

HIT, HITS, VISITORS = "hit", "hits", "visitors"

SCRIPT_FILE = "django_hitcount/seen.js"
"""No public list of trackers blocks this name, nor the one that the docs advise for the address:
tests/browser/test_beacon.py."""

SCRIPT = '<script src="{}" data-url="{}" defer></script>'

IMAGE = '<noscript><img src="{}" alt="" width="1" height="1"></noscript>'


class Token(NamedTuple):
    """What a token allows."""

    purpose: str
    """HIT: to count a hit. HITS and VISITORS: to show this number."""

    model: type[Model]
    object_id: str
    counter: str
    days: int
    """For VISITORS: on how many days, today included. 0 for the others."""


def beacon_token(
    obj: Model,
    *,
    counter: str = DEFAULT_COUNTER,
    show: Literal["hits", "visitors"] | None = None,
    days: int = 1,
) -> str:
    """
    Return the token that a page sends to count a hit on ``obj``, or to show a number of it.

    It goes into the attribute ``data-hit`` of an element; with ``show="hits"``, into ``data-hits``;
    with ``show="visitors"``, into ``data-visitors``. The visitors are those of so many ``days``,
    today included. A token that shows a number cannot count a hit.

    Raises InvalidArgument if an argument is invalid. Costs what record_hit() costs before it
    records: a query at the first call of a process for a model.
    """
    counter_key(obj, counter=counter)  # Checks both, as the next one checks the days.
    last_days(days)
    if show not in {None, HITS, VISITORS}:
        raise InvalidArgument(
            f"Invalid show: {show!r}. Pass 'hits' or 'visitors', or leave it out."
        )
    if show == VISITORS:
        valid_visitor_counter(counter)
    model: Any = obj._meta.concrete_model
    parts = [show or HIT, model._meta.label_lower, object_id_of(obj), counter]
    if show == VISITORS:
        parts.append(days)
    return Signer(salt=SALT).sign_object(parts)


def read_token(text: str) -> Token | None:
    """Return what a token allows; None if it is not ours, or its model or counter has gone."""
    try:
        purpose, label, object_id, counter, *days = Signer(salt=SALT).unsign_object(text)
        model = apps.get_model(label)
    except (BadSignature, LookupError, ValueError):
        return None
    options = conf.get_config().counters.get(counter)
    if options is None or (purpose == VISITORS and not options.visitors):
        return None
    return Token(purpose, model, object_id, counter, *(days or [0]))


def beacon_url(name: str, *args: str) -> str:
    """Return the address of a view. Raises ImproperlyConfigured if the project has none."""
    try:
        return reverse(f"django_hitcount:{name}", args=args)
    except NoReverseMatch as exc:
        raise ImproperlyConfigured(
            "{% hit_beacon %} needs an address that pages can send their hits to. Add it to your "
            'urlpatterns: path("seen/", include("django_hitcount.urls")).'
        ) from exc


def is_preview(request: HttpRequest, obj: Model, counter: str) -> bool:
    """
    Return whether a refusal of HITCOUNT["REFUSALS"] says that the page is a preview.

    The request of the beacon does not know that any more, so the page decides.
    """
    return find_refusal(HitContext(request, obj, counter), only="preview") is not None
