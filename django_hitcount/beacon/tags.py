"""What ``{% hit_beacon %}`` prints, and when it prints nothing."""

from __future__ import annotations

import logging

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from django_hitcount.exceptions import TransactionLost
from django_hitcount.refusals import HitContext, get_refusals

logger = logging.getLogger("django_hitcount")

SCRIPT_FILE = "django_hitcount/seen.js"
"""No public list of trackers blocks this name, nor the one that the docs advise for the address:
tests/browser/test_beacon.py."""

SCRIPT = '<script src="{}" data-url="{}" defer></script>'

IMAGE = '<noscript><img src="{}" alt="" width="1" height="1"></noscript>'


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
    context = HitContext(request, obj, counter)
    try:
        return any(item.refuses(context) for item in get_refusals() if item.name == "preview")
    except TransactionLost:
        raise
    except Exception:
        # As when a hit is recorded: an error in a refusal must not break a page.
        logger.exception("The refusal 'preview' failed, and is ignored")
        return False
