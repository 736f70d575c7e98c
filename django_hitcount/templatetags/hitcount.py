"""``{% load hitcount %}``: count and show hits."""

from __future__ import annotations

from typing import Literal

from django import template
from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.counted_models import is_unsaved
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.recording import record_page_hit
from django_hitcount.short_numbers import format_short
from django_hitcount.totals import total_or_none
from django_hitcount.unique_visitors import Visitors, visitors_or_none

register = template.Library()


@register.simple_tag(takes_context=True)
def hit_count(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> int | Literal[""]:
    """
    Count this page's hit on ``obj``, once per request, and print the total.

    Prints nothing if the total cannot be read now. Costs what record_page_hit() costs.
    """
    return _or_nothing(record_page_hit(context.get("request"), obj, counter=counter).total)


@register.simple_tag(takes_context=True)
def hit_total(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> int | Literal[""]:
    """
    Print the total of ``obj`` without counting a hit.

    Prints nothing if the total cannot be read now or ``obj`` is not saved. Costs what
    get_total() costs.
    """
    if is_unsaved(obj):
        return ""
    with CurrentPage(context.get("request")):
        return _or_nothing(total_or_none(obj, counter=counter))


@register.simple_tag(takes_context=True)
def hit_visitors(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER, days: int = 1
) -> Visitors | Literal[""]:
    """
    Print how many different visitors ``obj`` had in the last ``days``, today included.

    Prints nothing if the number cannot be read now or ``obj`` is not saved. Costs what
    get_visitors() costs.
    """
    if is_unsaved(obj):
        return ""
    with CurrentPage(context.get("request")):
        return visitors_or_none([obj], days=days, counter=counter).get(obj, "")


@register.filter
def short_number(value: object) -> object:
    """Write a whole number in few characters, such as 1.2K; leave anything else as it is."""
    return format_short(value) if isinstance(value, int) else value


def _or_nothing(total: int | None) -> int | Literal[""]:
    return "" if total is None else total
