"""``{% load hitcount_pages %}``: show the hits and visitors of the page, and of the whole site."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django import template
from django.core.exceptions import SuspiciousOperation
from django.db.models import Model
from django.http import HttpRequest

from django_hitcount.conf import get_config
from django_hitcount.counters.days import last_days
from django_hitcount.counters.keys import check_counter, valid_visitor_counter
from django_hitcount.numbers import errors_logged
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.page_numbers import page_number
from django_hitcount.pages.models import WholeSite, find_page
from django_hitcount.pages.paths import path_of, site_id_of

register = template.Library()


@register.simple_tag(takes_context=True)
def page_hits(
    context: template.Context, *, days: int | None = None, counter: str | None = None
) -> Any:
    """
    Print the hits of this page, of all time, or of the last ``days``: 1 is today.

    ``counter`` is by default the one that HITCOUNT["PAGES"] names.

    The view that is being answered is not among them: it counts after that. Prints 0 for a page
    that was never counted, and nothing without a request or for a forged one, or if the number
    cannot be read now.
    Costs what ``{% hits %}`` costs, and a query if the process does not know the page.
    """
    return _number(context, _page, days=days, counter=counter)


@register.simple_tag(takes_context=True)
def page_visitors(context: template.Context, *, days: int = 1, counter: str | None = None) -> Any:
    """Print how many different visitors this page had on the last ``days``. See page_hits()."""
    return _number(context, _page, days=days, counter=counter, of_visitors=True)


@register.simple_tag(takes_context=True)
def site_hits(
    context: template.Context, *, days: int | None = None, counter: str | None = None
) -> Any:
    """Print the hits of the whole site, of all time, or of the last ``days``. See page_hits()."""
    return _number(context, _site, days=days, counter=counter)


@register.simple_tag(takes_context=True)
def site_visitors(context: template.Context, *, days: int = 1, counter: str | None = None) -> Any:
    """Print how many visitors the whole site had on the last ``days``. See page_hits()."""
    return _number(context, _site, days=days, counter=counter, of_visitors=True)


def _page(request: HttpRequest) -> Model | None:
    path = path_of(request)
    return None if path is None else find_page(site_id_of(request), path)


def _site(request: HttpRequest) -> Model:
    return WholeSite(site_id_of(request))


def _number(
    context: template.Context,
    find: Callable[[HttpRequest], Model | None],
    *,
    days: int | None,
    counter: str | None,
    of_visitors: bool = False,
) -> Any:
    """Return a number of what ``find`` finds; "" if it cannot be read now."""
    request, ends = context.get("request"), None if days is None else last_days(days)
    valid_counter = valid_visitor_counter if of_visitors else check_counter
    counter = valid_counter(get_config().pages.counter if counter is None else counter)
    if request is None:
        return ""
    found = None
    with (
        CurrentPage(request),
        errors_logged("The hits of a page cannot be read"),
        suppress(SuspiciousOperation),  # The host or the query is forged.
    ):
        obj = find(request)
        if obj is None:
            return 0
        found = page_number(request, obj, counter=counter, days=ends, of_visitors=of_visitors)
    return "" if found is None else found
