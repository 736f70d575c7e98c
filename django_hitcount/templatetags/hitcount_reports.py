"""``{% load hitcount_reports %}``: numbers and days on the pages in the admin."""

from __future__ import annotations

import datetime

from django import template
from django.utils.formats import date_format, get_format, number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext, pgettext

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import time_since
from django_hitcount.reports import label_counter
from django_hitcount.templatetags.hitcount import format_short

register = template.Library()
register.filter("counter_label", label_counter)
register.filter("short", format_short)

MINUS = "\u2212"

MINUTE = datetime.timedelta(minutes=1)


@register.filter
def grouped(number: float) -> str:
    """Write a number with the separators of the active language: 1,204."""
    return number_format(number, force_grouping=True)


@register.filter
def decimal(number: float) -> str:
    """Write a number with one decimal, rounded: 1,204.5."""
    return number_format(round(number, 1) or 0, decimal_pos=1, force_grouping=True)


@register.filter
def percent(number: float) -> str:
    """Write a percentage with one decimal: 12.3%."""
    return pgettext("percentage", "%(number)s%%") % {"number": decimal(number)}


@register.filter
def change(number: float) -> str:
    """Write a percentage with its sign: +12.3%."""
    return sign_of(round(number, 1)) + percent(abs(number))


@register.filter
def signed(number: int) -> str:
    """Write a number with its sign: +1,204."""
    return sign_of(number) + grouped(abs(number))


def sign_of(number: float) -> str:
    return "+" if number > 0 else MINUS if number < 0 else ""


@register.filter
def short_day(day: datetime.date) -> str:
    """Write a day without its year and with a short name of its month: Nov 22."""
    return date_format(day, _with_short_month("MONTH_DAY_FORMAT"))


@register.filter
def short_month(day: datetime.date) -> str:
    """Write a month with a short name: Nov 2026."""
    return date_format(day, _with_short_month("YEAR_MONTH_FORMAT"))


def _with_short_month(name: str) -> str:
    """Return a format of the active language. Django has none with short months."""
    return str(get_format(name)).replace("F", "M")


@register.filter
def ago(moment: datetime.datetime) -> str:
    """Say how long ago a moment was: "14 minutes ago"."""
    if time_since(moment) < MINUTE:  # timesince() says "0 minutes".
        return gettext("less than a minute ago")
    return gettext("%(time)s ago") % {"time": timesince(moment)}


@register.filter
def template_code(counter: str) -> str:
    """Return what counts the hits of a counter in a template."""
    option = "" if counter == DEFAULT_COUNTER else f' counter="{counter}"'
    return f"{{% load hitcount %}} {{% hit_count object{option} %}}"
