"""Refusals by what a request says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from django_hitcount.conf.networks import Network, parse_network
from django_hitcount.conf.patterns import PatternError, compiled
from django_hitcount.refusals.base import HitContext, Refusal, refusal, texts
from django_hitcount.visitors import bots
from django_hitcount.visitors.addresses import client_address, is_within


@refusal("method", _("The request is not a GET: nobody looks at the answer."))
def method(context: HitContext) -> bool:
    """All but GET; so HEAD, too."""
    return context.request.method != "GET"


@refusal("prefetch", _("The browser loads the page in case somebody wants to see it."))
def prefetch(context: HitContext) -> bool:
    """What browsers say of a prefetch, a prerender or a preview."""
    headers = context.request.META
    if headers.keys().isdisjoint(_PURPOSES):
        return False
    return any(_AHEAD(headers.get(name, "")) for name in _PURPOSES)


_PURPOSES = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_AHEAD = re.compile("prefetch|prerender|preview", re.IGNORECASE).search


@refusal("bot", _("The user agent is that of a bot, or empty."))
def bot(context: HitContext) -> bool:
    """See bots.is_bot()."""
    return bots.is_bot(context.request.META.get("HTTP_USER_AGENT", ""))


@refusal("do_not_track", _("The browser asks not to be tracked."))
def do_not_track(context: HitContext) -> bool:
    """The header ``DNT: 1``."""
    return bool(context.request.META.get("HTTP_DNT") == "1")


@refusal("global_privacy_control", _("The browser asks for its data not to be shared."))
def global_privacy_control(context: HitContext) -> bool:
    """The header ``Sec-GPC: 1``."""
    return bool(context.request.META.get("HTTP_SEC_GPC") == "1")


def previews(cookie: str | None = None, header: str | None = None) -> Refusal:
    """
    Refuse previews of pages that are being written.

    Args:
        cookie: the name of a cookie that such a request has, with any value but an empty one.
        header: the name of a header, likewise.

    Wagtail's previews are found without either: it sets ``request.is_preview``.
    """
    _check_name(cookie, "cookie")
    _check_name(header, "header")
    header_key = "HTTP_" + header.upper().replace("-", "_") if header else None

    @refusal("preview", _("Somebody looks at a preview."))
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
        raise ValueError(f"{option} is {value!r}: use the name of a {option}")


def addresses(networks: Iterable[str]) -> Refusal:
    """Refuse clients in IPv4 and IPv6 networks, in CIDR notation; see client_address()."""
    within = tuple(_network(text) for text in texts(networks, "networks", "networks"))

    @refusal("address", _("The client has an address that is not counted."))
    def has_address(context: HitContext) -> bool:
        return is_within(client_address(context.request.META), within)

    return has_address


def _network(text: str) -> Network:
    try:
        return parse_network(text)
    except ValueError as exc:
        raise ValueError(
            f"{text!r} is no IP address or network ({exc}); write 192.0.2.1 or 192.0.2.0/24"
        ) from exc


def user_agents(patterns: Iterable[str]) -> Refusal:
    """Refuse user agents that one of these regular expressions is found in; case plays no part."""
    expressions = texts(patterns, "patterns", "regular expressions")
    try:
        wanted = compiled(expressions)
    except PatternError as exc:
        raise ValueError(f"{exc.pattern!r} is no regular expression: {exc}") from exc

    def has_user_agent(context: HitContext) -> bool:
        user_agent = context.request.META.get("HTTP_USER_AGENT", "")
        return wanted.match_in(user_agent[: bots.LONGEST_USER_AGENT])

    reason = _("The user agent is one that is not counted.")
    return Refusal("user_agent", reason, has_user_agent, wanted)
