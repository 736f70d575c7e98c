"""``{% load hitcount %}``: count and show hits."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from django import template
from django.apps import apps
from django.db.models import Model
from django.templatetags.static import static
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import pgettext

from django_hitcount.beacon import IMAGE, SCRIPT, SCRIPT_FILE, beacon_url, is_preview
from django_hitcount.beacon import beacon_token as make_beacon_token
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import find_range, last_days
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.counters.visitors import Visitors
from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.numbers import errors_logged
from django_hitcount.outages import ranking_breaker
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.page_numbers import page_number
from django_hitcount.prefetching import prefetch_hits
from django_hitcount.rankings import popular
from django_hitcount.recording import record_hit

register = template.Library()

THOUSAND = 1000


@register.simple_tag(takes_context=True)
def hit_count(
    context: template.Context, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> int | Literal[""]:
    """
    Count this page's hit on ``obj``, once per request, and print the total.

    Prints nothing if the total cannot be read now. Costs what record_hit() costs.
    """
    total = record_hit(obj, context.get("request"), counter=counter, once_per_request=True).total
    return "" if total is None else total


@register.simple_tag(takes_context=True)
def hits(
    context: template.Context,
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> int | Literal[""]:
    """
    Print the hits on ``obj`` without counting one: of all time, or of some days. The arguments are
    those of get_hits().

    Prints nothing if the number cannot be read now or ``obj`` is not saved. Costs nothing if this
    page has recorded or read it, or if it was read with a list. If not, costs what get_hits()
    costs, once per page.
    """
    ends = find_range(days, first_day, last_day)
    found: int | None = page_number(context.get("request"), obj, counter=counter, days=ends)
    return "" if found is None else found


@register.simple_tag(takes_context=True)
def visitors(
    context: template.Context,
    obj: Model,
    *,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    counter: str = DEFAULT_COUNTER,
) -> Visitors | Literal[""]:
    """
    Print how many different visitors ``obj`` had: today, or on some days. The arguments are those
    of get_visitors().

    Prints nothing if the number cannot be read now or ``obj`` is not saved. Costs nothing if this
    page has recorded a hit on ``obj`` and Redis knows the number, or if it was read with a list. If
    not, costs what get_visitors() costs, once per page.
    """
    ends = find_range(days, first_day, last_day) or last_days(1)
    found: Visitors | None = page_number(
        context.get("request"), obj, counter=counter, days=ends, of_visitors=True
    )
    return "" if found is None else found


@register.simple_tag(takes_context=True)
def hit_beacon(
    context: template.Context, obj: Model | None = None, *, counter: str = DEFAULT_COUNTER
) -> str:
    """
    Let this page count its hit on ``obj`` when somebody sees it, even if it comes from a cache.

    Prints the script with the token of the hit, and an image for readers without JavaScript.
    Without ``obj``, prints the script alone, for a page that only shows numbers: see beacon_token.
    Prints nothing on a preview, in edit mode, and if ``obj`` is not saved. Costs what
    beacon_token() costs.
    """
    request = context.get("request")
    if obj is None:
        return format_html(SCRIPT, static(SCRIPT_FILE), beacon_url("count_views"))
    if is_unsaved(obj) or (request is not None and is_preview(request, obj, counter)):
        return ""
    token = make_beacon_token(obj, counter=counter)
    return format_html(
        '<span data-hit="{}" hidden></span>' + SCRIPT + IMAGE,
        token,
        static(SCRIPT_FILE),
        beacon_url("count_views"),
        beacon_url("count_image", token),
    )


@register.simple_tag
def beacon_token(
    obj: Model,
    *,
    counter: str = DEFAULT_COUNTER,
    show: Literal["hits", "visitors"] | None = None,
    days: int = 1,
) -> str:
    """
    Print the token for an element that shows a number on a cached page::

        <b data-hits="{% beacon_token article show="hits" %}"></b>

    The arguments and costs are those of django_hitcount.beacon_token(). Prints nothing if ``obj``
    is not saved.
    """
    if is_unsaved(obj):
        return ""
    return make_beacon_token(obj, counter=counter, show=show, days=days)


@register.simple_tag(takes_context=True)
def popular_objects(
    context: template.Context,
    source: Any,
    limit: int,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
) -> list[Any]:
    """
    Return the objects with the most hits, for a page whose view is not yours::

        {% popular_objects "blog.Article" 5 days=7 as articles %}

    The source is the name of a model, or what popular() takes. The other arguments and the costs
    are those of popular(), and so are the errors of wrong arguments. The list is empty if it cannot
    be read now.
    """
    if isinstance(source, str):
        source = _find_model(source)
    found: list[Any] = []
    with (
        CurrentPage(context.get("request")),
        errors_logged("A ranking cannot be read"),
        ranking_breaker().guard(),
        protect_transactions(),  # The objects may be in another database than the counts.
    ):
        found += popular(
            source, limit, counter=counter, days=days, first_day=first_day, last_day=last_day
        )
    return found


def _find_model(label: str) -> type[Model]:
    try:
        return apps.get_model(label)
    except (LookupError, ValueError) as exc:
        raise InvalidArgument(
            f"Invalid source: {label!r}. Pass the name of a model, such as 'blog.Article'."
        ) from exc


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


def format_short(number: int) -> str:
    """
    Write ``number`` with one decimal below ten of a unit, and none above: 999, 1.2K, 12K, 3.4M.

    Rounds to the nearest value, halves away from zero. T, for 10^12, is the largest unit: above it,
    digits are grouped, as in 9,223,372T, the largest number in a table. The separators, the letters
    and their place are those of the active language.
    """
    number = number + 0  # Evaluates a lazy object, which has no minus.
    sign, size = (-1, -number) if number < 0 else (1, number)
    unit, (text, *larger) = 1, _units()
    while larger and _divide(size, unit) >= THOUSAND:
        unit, (text, *larger) = unit * THOUSAND, larger
    tenths = _divide(10 * size, unit)
    has_decimal = unit > 1 and tenths < 100 and tenths % 10
    value = sign * tenths / 10 if has_decimal else sign * _divide(size, unit)
    decimals = 1 if has_decimal else 0
    return text % {"number": number_format(value, decimal_pos=decimals, force_grouping=True)}


def _units() -> list[str]:
    """How numbers below a thousand are written, then thousands, millions and so on."""
    return [
        "%(number)s",
        pgettext("short number, thousands", "%(number)sK"),
        pgettext("short number, millions", "%(number)sM"),
        pgettext("short number, billions", "%(number)sB"),
        pgettext("short number, trillions", "%(number)sT"),
    ]


def _divide(size: int, unit: int) -> int:
    """The nearest whole number; halves are rounded up."""
    return (2 * size + unit) // (2 * unit)
