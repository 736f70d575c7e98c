"""
``{% load hitcount_tags %}``: the tags of django-hitcount.

Each is about an object: ``for object``. Some also take ``within "days=7"`` and ``as name``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from django import template
from django.db.models import Model
from django.template import TemplateSyntaxError
from django.template.base import FilterExpression, Parser, Token
from django.urls import reverse
from django.utils.html import escapejs, format_html

from django_hitcount.beacon import beacon_token
from django_hitcount.compat.models import days_within
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.templatetags.hitcount import hits

register = template.Library()

Find = Callable[[template.Context, Model], Any]
"""What a tag prints, or sets a variable to."""

VARIABLES = """<script type="text/javascript">
var hitcountJS = {{hitcountPK : '{}',hitcountURL : '{}'}};
</script>"""

SCRIPT = """<script type="text/javascript">
fetch('{1}', {{
  method: 'POST', keepalive: true, headers: {{'X-Requested-With': 'XMLHttpRequest'}},
  body: new URLSearchParams({{hitcountPK: '{0}'}})
}})"""

LOG = ".then((response) => response.text()).then(console.log, console.log)"


class Variables(NamedTuple):
    """What a script of the site needs to count a hit."""

    pk: str
    ajax_url: str
    hits: str


class ForObject(template.Node):
    def __init__(self, tag: str, obj: FilterExpression, name: str | None, find: Find) -> None:
        self.tag = tag
        self.obj = obj
        self.name = name
        self.find = find

    def render(self, context: template.Context) -> str:
        obj = self.obj.resolve(context, ignore_failures=True)
        if not isinstance(obj, Model):
            raise TemplateSyntaxError(
                f"{self.tag!r} requires a model instance: 'for {self.obj.token}' is {obj!r}."
            )
        value = self.find(context, obj)
        if self.name is None:
            return str(value)
        context[self.name] = value
        return ""


def _parse(
    parser: Parser, token: Token, allowed: Collection[str] = ()
) -> tuple[str, FilterExpression, dict[str, str]]:
    """Return the name of a tag, its object, and the words that follow those ``allowed``."""
    tag, *words = token.split_contents()
    options = dict(zip(words[::2], words[1::2], strict=False))
    expected = ["for", *(name for name in allowed if name in options)]
    if words[::2] != expected or len(words) % 2:
        more = "".join(f" [{name} ...]" for name in allowed)
        raise TemplateSyntaxError(f"{tag!r} requires 'for object{more}', not {words!r}.")
    return tag, parser.compile_filter(options["for"]), options


@register.tag
def get_hit_count(parser: Parser, token: Token) -> ForObject:
    """
    Print the hits, of all time or of some days: ``for object within "days=7" as name``.

    Hours and minutes are rounded up to whole days, today included.
    """
    tag, obj, options = _parse(parser, token, ["within", "as"])
    days = _read_period(options["within"]) if "within" in options else None
    return ForObject(tag, obj, options.get("as"), lambda *of: str(hits(*of, days=days)))


def _read_period(text: str) -> int:
    try:
        period = (part.split("=") for part in text.strip("\"'").split(","))
        return days_within(**{name.strip(): int(number) for name, number in period})
    except (TypeError, ValueError, OverflowError) as exc:
        raise TemplateSyntaxError(
            f"'get_hit_count' requires arguments of a timedelta, such as within \"days=7\", not "
            f"{text}."
        ) from exc


def _find_variables(context: template.Context, obj: Model) -> Variables:
    pk = "" if is_unsaved(obj) else beacon_token(obj)
    return Variables(pk, reverse("hitcount:hit_ajax"), str(hits(context, obj)))


@register.tag
def get_hit_count_js_variables(parser: Parser, token: Token) -> ForObject:
    """Set a variable to what a script needs: ``for object as name``."""
    tag, obj, options = _parse(parser, token, ["as"])
    if "as" not in options:
        raise TemplateSyntaxError(f"{tag!r} requires 'for object as name'.")
    return ForObject(tag, obj, options["as"], _find_variables)


@register.tag
def insert_hit_count_js_variables(parser: Parser, token: Token) -> ForObject:
    """Print a script that sets ``hitcountJS``: ``for object``."""
    tag, obj, _ = _parse(parser, token)
    return ForObject(tag, obj, None, lambda *of: _insert(VARIABLES, *of))


@register.tag
def insert_hit_count_js(parser: Parser, token: Token) -> ForObject:
    """Print a script that counts the hit: ``for object``, and ``debug`` to log the answer."""
    is_debug = token.contents.endswith(" debug")
    token.contents = token.contents.removesuffix(" debug")
    tag, obj, _ = _parse(parser, token)
    script = f"{SCRIPT}{LOG if is_debug else ''};\n</script>"
    return ForObject(tag, obj, None, lambda *of: _insert(script, *of))


def _insert(script: str, context: template.Context, obj: Model) -> str:
    if is_unsaved(obj):
        return ""
    return format_html(script, beacon_token(obj), escapejs(reverse("hitcount:hit_ajax")))
