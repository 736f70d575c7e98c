"""``{% load hitcount_admin %}``: filters of the pages in the admin."""

from __future__ import annotations

import datetime

from django import template
from django.utils.timesince import timesince
from django.utils.translation import gettext

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import time_since
from django_hitcount.reports.labels import label_counter

register = template.Library()

MINUTE = datetime.timedelta(minutes=1)


@register.filter
def counter_label(counter: str) -> str:
    """Return the name of a counter for people, see label_counter()."""
    return label_counter(counter)


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
