"""``{% load hitcount_admin %}``: filters of the pages in the admin."""

from __future__ import annotations

from django import template
from django.utils.formats import number_format

from django_hitcount.reports.labels import label_counter

register = template.Library()

MINUS = "\u2212"


@register.filter
def counter_label(counter: str) -> str:
    """Return the name of a counter for people, see label_counter()."""
    return label_counter(counter)


@register.filter
def signed(number: int) -> str:
    """Write a number with its sign: +1,204."""
    return ("+" if number > 0 else MINUS) + number_format(abs(number), force_grouping=True)
