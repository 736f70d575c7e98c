"""
``{% load hitcount_tags %}``: the tags of django-hitcount.

Each is about an object: ``for object``. ``for`` and ``within`` are arguments that say nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from django import template
from django.db.models import Model
from django.template import TemplateSyntaxError
from django.template.base import Node, Parser, Token
from django.urls import reverse
from django.utils.html import escapejs, format_html

from django_hitcount.beacon import beacon_token
from django_hitcount.compat.models import days_within
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.templatetags.hitcount import hits

register = template.Library()

VARIABLES = """<script type="text/javascript">
var hitcountJS = {{hitcountPK : '{}',hitcountURL : '{}'}};
</script>"""

SCRIPT = """<script type="text/javascript">
fetch('{1}', {{
  method: 'POST', keepalive: true, headers: {{'X-Requested-With': 'XMLHttpRequest'}},
  body: new URLSearchParams({{hitcountPK: '{0}'}})
}})"""

LOG = ".then((response) => response.text()).then(console.log, console.log)"


UNQUOTED = re.compile(r"(?<=\swithin)\s+(\w+=\S+)")


class Variables(NamedTuple):
    """What a script of the site needs to count a hit."""

    pk: str
    ajax_url: str
    hits: str


@register.simple_tag(takes_context=True)
def print_hits(
    context: template.Context, for_: str, obj: Model, within: str = "", period: str | None = None
) -> str:
    """See get_hit_count()."""
    return str(hits(context, obj, days=None if period is None else _read_period(period)))


@register.tag
def get_hit_count(parser: Parser, token: Token) -> Node:
    """
    Print the hits, of all time or of some days: ``for object within "days=7" as name``.

    Hours and minutes are rounded up to whole days, today included.
    """
    # Without quotes, it would be a keyword argument.
    token.contents = UNQUOTED.sub(r' "\1"', token.contents)
    node: Node = register.tags["print_hits"](parser, token)
    return node


def _read_period(text: str) -> int:
    try:
        period = (part.split("=") for part in text.split(","))
        return days_within(**{name.strip(): int(number) for name, number in period})
    except (AttributeError, TypeError, ValueError, OverflowError) as exc:
        raise TemplateSyntaxError(
            f"'get_hit_count' requires arguments of a timedelta, such as within \"days=7\", not "
            f"{text!r}."
        ) from exc


@register.simple_tag(takes_context=True)
def get_hit_count_js_variables(context: template.Context, for_: str, obj: Model) -> Variables:
    """Set a variable to what a script needs: ``for object as name``."""
    pk = "" if is_unsaved(obj) else beacon_token(obj)
    return Variables(pk, reverse("hitcount:hit_ajax"), str(hits(context, obj)))


@register.simple_tag
def insert_hit_count_js_variables(for_: str, obj: Model) -> str:
    """Print a script that sets ``hitcountJS``: ``for object``."""
    return _insert(VARIABLES, obj)


@register.simple_tag
def insert_hit_count_js(for_: str, obj: Model, *debug: object) -> str:
    """Print a script that counts the hit: ``for object``, and ``debug`` to log the answer."""
    return _insert(f"{SCRIPT}{LOG if debug else ''};\n</script>", obj)


def _insert(script: str, obj: Model) -> str:
    if is_unsaved(obj):
        return ""
    return format_html(script, beacon_token(obj), escapejs(reverse("hitcount:hit_ajax")))
