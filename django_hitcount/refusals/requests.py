"""Refusals by what a request contains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from django_hitcount.conf.networks import parse_network
from django_hitcount.conf.patterns import compile_patterns
from django_hitcount.refusals.base import HitContext, Refusal, convert_texts, refusal
from django_hitcount.visitors import bots
from django_hitcount.visitors.addresses import client_address, is_within

__all__ = [
    "addresses",
    "bot",
    "do_not_track",
    "global_privacy_control",
    "method",
    "prefetch",
    "previews",
    "user_agents",
]


@refusal("method", _("The request is not a GET, so it does not show a page."), uses_database=False)
def method(context: HitContext) -> bool:
    """Refuse all methods except GET. HEAD is refused, too."""
    return context.request.method != "GET"


@refusal(
    "prefetch",
    _("The browser loads the page ahead, in case the user opens it."),
    uses_database=False,
)
def prefetch(context: HitContext) -> bool:
    """Refuse requests that browsers declare as a prefetch, a prerender or a preview."""
    headers = context.request.META
    if headers.keys().isdisjoint(_PURPOSES):
        return False
    return any(_is_ahead(headers.get(name, "")) for name in _PURPOSES)


_PURPOSES = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_is_ahead = re.compile("prefetch|prerender|preview", re.IGNORECASE).search


@refusal("bot", _("The user agent is that of a bot, or empty."), uses_database=False)
def bot(context: HitContext) -> bool:
    """Refuse bots; see bots.is_bot()."""
    return bots.is_bot(context.request.META.get("HTTP_USER_AGENT", ""))


@refusal("do_not_track", _("The browser asks not to be tracked."), uses_database=False)
def do_not_track(context: HitContext) -> bool:
    """Refuse requests with the header ``DNT: 1``."""
    return bool(context.request.META.get("HTTP_DNT") == "1")


@refusal(
    "global_privacy_control",
    _("The browser asks for its data not to be shared."),
    uses_database=False,
)
def global_privacy_control(context: HitContext) -> bool:
    """Refuse requests with the header ``Sec-GPC: 1``."""
    return bool(context.request.META.get("HTTP_SEC_GPC") == "1")


def previews(cookie: str | None = None, header: str | None = None) -> Refusal:
    """
    Refuse previews of unpublished pages.

    Args:
        cookie: the name of a cookie. Requests that have it, with a value that is not empty, are
            previews.
        header: the name of a header, with the same meaning.

    For Wagtail's previews, neither is needed: Wagtail sets ``request.is_preview``. Raises
    ValueError for a wrong name.
    """
    _check_name(cookie, "cookie")
    _check_name(header, "header")
    header_key = "HTTP_" + header.upper().replace("-", "_") if header else None

    @refusal("preview", _("The page is a preview."), uses_database=False)
    def is_preview(context: HitContext) -> bool:
        request = context.request
        return bool(
            getattr(request, "is_preview", False)
            or (cookie and request.COOKIES.get(cookie))
            or (header_key and request.META.get(header_key))
        )

    return is_preview


def _check_name(value: object, option: str) -> None:
    if value is not None and not (isinstance(value, str) and value):
        raise ValueError(f"{option} must be the name of a {option}, not {value!r}")


def addresses(networks: Iterable[str]) -> Refusal:
    """
    Refuse clients in IPv4 and IPv6 networks, given in CIDR notation. See client_address().

    Raises ValueError for invalid networks.
    """
    within = tuple(map(parse_network, convert_texts(networks, "networks", "networks")))

    @refusal("address", _("The address of the client is not counted."), uses_database=False)
    def has_address(context: HitContext) -> bool:
        return is_within(client_address(context.request.META), within)

    return has_address


def user_agents(patterns: Iterable[str]) -> Refusal:
    """
    Refuse user agents that one of these regular expressions matches anywhere, ignoring case.

    Raises ValueError for invalid expressions.
    """
    wanted = compile_patterns(convert_texts(patterns, "patterns", "regular expressions"))

    @refusal("user_agent", _("The user agent is not counted."), uses_database=False)
    def has_user_agent(context: HitContext) -> bool:
        user_agent = context.request.META.get("HTTP_USER_AGENT", "")
        return wanted.match_in(user_agent[: bots.LONGEST_USER_AGENT])

    return has_user_agent
