"""``{% load hitcount %}``: count and show hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from django import template
from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.page_numbers import page_hits_of_days, page_total, page_visitors
from django_hitcount.prefetching import prefetch_hits
from django_hitcount.recording import record_page_hit
from django_hitcount.short_numbers import format_short
from django_hitcount.unique_visitors import Visitors

register = template.Library()


@register.simple_tag(takes_context=True)
def hit_count(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> int | Literal[""]:
    """
    Count this page's hit on ``obj``, once per request, and print the total.

    Prints nothing if the total cannot be read now. Costs what record_page_hit() costs.
    """
    total = record_page_hit(context.get("request"), obj, counter=counter).total
    return "" if total is None else total


@register.simple_tag(takes_context=True)
def hit_total(
    context: template.Context,
    obj: Model,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int | None = None,
) -> int | Literal[""]:
    """
    Print the total of ``obj`` without counting a hit. With ``days``, print the hits in the last
    days, today included.

    Prints nothing if the number cannot be read now or ``obj`` is not saved. Costs nothing if this
    page has recorded or read the total, or if it was read with a list. If not, costs what
    get_total() costs. With ``days``, costs what hits_between() costs, once per page.
    """
    if is_unsaved(obj):
        return ""
    request = context.get("request")
    with CurrentPage(request):
        if days is None:
            hits = page_total(request, obj, counter=counter)
        else:
            hits = page_hits_of_days(request, obj, counter=counter, days=days)
    return "" if hits is None else hits


@register.simple_tag(takes_context=True)
def hit_visitors(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER, days: int = 1
) -> Visitors | Literal[""]:
    """
    Print how many different visitors ``obj`` had in the last ``days``, today included.

    Prints nothing if the number cannot be read now or ``obj`` is not saved. Costs nothing if this
    page has recorded a hit on ``obj`` and Redis knows the number, or if it was read with a list. If
    not, costs what page_numbers.read_numbers() costs.
    """
    if is_unsaved(obj):
        return ""
    with CurrentPage(context.get("request")):
        visitors = page_visitors(context.get("request"), obj, counter=counter, days=days)
    return "" if visitors is None else visitors


@register.simple_tag(takes_context=True, name="prefetch_hits")
def prefetch(
    context: template.Context,
    objects: Iterable[Model | None] | None,
    *,
    counters: str | Sequence[str] = DEFAULT_COUNTER,
    visitors_days: str | int | Sequence[int] | None = None,
) -> Literal[""]:
    """
    Read the numbers of many objects at once, and print nothing.

    Several counters, or numbers of days, are a list or a text: ``counters="views,downloads"``.
    Costs what prefetching.prefetch_hits() costs.
    """
    days: Any = visitors_days
    if isinstance(counters, str):
        counters = _split(counters)
    if isinstance(days, str):  # An error quotes what is no number.
        days = [int(text) if text.isdecimal() else text for text in _split(days)]
    with CurrentPage(context.get("request")):
        prefetch_hits(objects or (), counters=counters, visitors_days=days)
    return ""


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


@register.filter
def short_number(value: object) -> object:
    """Write a whole number in few characters, such as 1.2K; leave anything else as it is."""
    return format_short(value) if isinstance(value, int) else value
