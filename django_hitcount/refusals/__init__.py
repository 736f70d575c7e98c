"""
Refusals, the reasons not to count a hit: an ordered list of small functions, like middleware.

HITCOUNT["REFUSALS"] can name those below. To write one, decorate a function that returns True to
refuse::

    @refusal("draft", "The page is a draft.")
    def draft(context: HitContext) -> bool:
        return "draft" in context.request.GET
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import ForeignKey, Model
from django.utils.translation import gettext_lazy as _
from is_bot import Bots

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.conf.kinds import compile_pattern, match_any, parse_network
from django_hitcount.refusals.consents import consent as consent
from django_hitcount.refusals.registry import HitContext, Refusal, get_refusals, refusal
from django_hitcount.visitors import is_forged
from django_hitcount.visitors.addresses import client_address, is_within

BUILT_IN = (
    *("method", "prefetch", "bot", "do_not_track", "global_privacy_control", "previews"),
    *("addresses", "user_agents", "staff", "groups", "permissions", "owner", "consent"),
)
"""What HITCOUNT["REFUSALS"] can name."""

__all__ = ["HitContext", "Refusal", "get_refusals", "is_bot", "refusal"]

REMEMBERED_USER_AGENTS = 10_000
"""
User agents whose classification a process caches: nearly all that a site receives.

They take about 3 MB, or 8 MB if clients invent user agents of the maximum length.
"""

LONGEST_USER_AGENT = 512
"""
Characters of a user agent that are classified, which takes up to 2 ms.

Browsers send at most 300. Each further 100 would cost 0.4 ms for each new user agent.
"""


@refusal("method", _("The request is not a GET, so it does not show a page."), uses_database=False)
def method(context: HitContext) -> bool:
    """Refuse all methods except GET, and the POST of a cached page. HEAD is refused, too."""
    return context.request.method != "GET" and not context.is_beacon


_AHEAD = _("The browser loads the page ahead, in case the user opens it.")


@refusal("prefetch", _AHEAD, uses_database=False)
def prefetch(context: HitContext) -> bool:
    """Refuse requests that browsers declare as a prefetch, a prerender or a preview."""
    headers = context.request.META
    if headers.keys().isdisjoint(_PURPOSES):
        return False
    return any(_is_ahead(headers.get(name, "")) for name in _PURPOSES)


_PURPOSES = [f"HTTP_{name}PURPOSE" for name in ("SEC_", "X_SEC_", "", "X_")]
_PURPOSES += ["HTTP_X_MOZ", "HTTP_HX_PRELOADED"]
_is_ahead = re.compile("prefetch|prerender|preview|^true$", re.IGNORECASE).search


@refusal("bot", _("The user agent is that of a bot, or empty."), uses_database=False)
def bot(context: HitContext) -> bool:
    """Refuse bots; see is_bot()."""
    return _classify(context.request.META.get("HTTP_USER_AGENT", "")[:LONGEST_USER_AGENT])


def is_bot(user_agent: str) -> bool:
    """
    Return whether ``user_agent`` belongs to a bot. An empty one does.

    Uses the patterns of is-bot and HITCOUNT["BOT_USER_AGENTS"]. What matches
    HITCOUNT["NOT_BOT_USER_AGENTS"] is never a bot. Costs a dict lookup; the first time that a
    process sees a user agent, about 0.3 ms, or 2 ms for the longest ones.
    """
    return _classify(user_agent[:LONGEST_USER_AGENT])


@cached_for_settings("HITCOUNT", maxsize=REMEMBERED_USER_AGENTS)
def _classify(user_agent: str) -> bool:
    """See is_bot(). ``user_agent`` has LONGEST_USER_AGENT characters at most."""
    config = conf.get_config()
    if match_any(config.not_bot_user_agents, user_agent):
        return False
    is_added = match_any(config.bot_user_agents, user_agent)
    return bool(is_added or not user_agent.strip() or _library().is_bot(user_agent))


_library = cache(Bots)
"""Returns the patterns of is-bot. They take some milliseconds to compile."""


@refusal("do_not_track", _("The browser asks not to be tracked."), uses_database=False)
def do_not_track(context: HitContext) -> bool:
    """Refuse requests with the header ``DNT: 1``."""
    return bool(context.request.META.get("HTTP_DNT") == "1")


@refusal(
    "global_privacy_control", _("The browser asks not to share its data."), uses_database=False
)
def global_privacy_control(context: HitContext) -> bool:
    """Refuse requests with the header ``Sec-GPC: 1``."""
    return bool(context.request.META.get("HTTP_SEC_GPC") == "1")


def previews(cookie: str | None = None, header: str | None = None) -> Refusal:
    """
    Refuse previews of unpublished pages, and pages that an editor is editing.

    Args:
        cookie: the name of a cookie. Requests that have it, with a value that is not empty, are
            previews.
        header: the name of a header, with the same meaning.

    Wagtail and django CMS need neither: the one sets ``request.is_preview``, and the toolbar of the
    other says which mode it is in. Raises ValueError for a wrong name.
    """
    named: dict[str, object] = {"cookie": cookie, "header": header}
    for option, value in named.items():
        if value is not None and not (isinstance(value, str) and value):
            raise ValueError(f"{option} must be the name of a {option}, not {value!r}")
    header_key = "HTTP_" + header.upper().replace("-", "_") if header else None

    @refusal("preview", _("The page is a preview, or is being edited."), uses_database=False)
    def is_preview(context: HitContext) -> bool:
        request, modes = context.request, ("edit", "structure", "preview")
        toolbar = getattr(request, "toolbar", None)
        return bool(
            getattr(request, "is_preview", False)
            or any(getattr(toolbar, f"{mode}_mode_active", False) for mode in modes)
            or (cookie and request.COOKIES.get(cookie))
            or (header_key and request.META.get(header_key))
        )

    return is_preview


def addresses(networks: Iterable[str]) -> Refusal:
    """
    Refuse clients in IPv4 and IPv6 networks, given in CIDR notation. See client_address().

    Raises ValueError for invalid networks.
    """
    within = tuple(map(parse_network, _convert_texts(networks, "networks", "networks")))

    @refusal("address", _("The address of the client is not counted."), uses_database=False)
    def has_address(context: HitContext) -> bool:
        return is_within(client_address(context.request.META), within)

    return has_address


def user_agents(patterns: Iterable[str]) -> Refusal:
    """
    Refuse user agents that one of these regular expressions matches anywhere, ignoring case.

    Raises ValueError for invalid expressions.
    """
    texts = _convert_texts(patterns, "patterns", "regular expressions")
    wanted = tuple(map(compile_pattern, texts))

    @refusal("user_agent", _("The user agent is not counted."), uses_database=False)
    def has_user_agent(context: HitContext) -> bool:
        user_agent = context.request.META.get("HTTP_USER_AGENT", "")
        return match_any(wanted, user_agent[:LONGEST_USER_AGENT])

    return has_user_agent


@refusal("staff", _("The user is a member of the staff."))
def staff(context: HitContext) -> bool:
    """Refuse members of the staff. Costs what ``request.user`` costs if it was not read before."""
    return bool(getattr(_logged_in_user(context), "is_staff", False))


def groups(names: Iterable[str]) -> Refusal:
    """
    Refuse users who are in one of the groups with these names.

    Costs a query for each hit of a user who is logged in. Raises ValueError for wrong names.
    """
    wanted = frozenset(_convert_texts(names, "names", "group names"))

    @refusal("group", _("The user is in a group that is not counted."))
    def is_in_group(context: HitContext) -> bool:
        user = _logged_in_user(context)
        return user is not None and user.groups.filter(name__in=wanted).exists()

    return is_in_group


def permissions(names: Iterable[str]) -> Refusal:
    """
    Refuse users who have one of these permissions, as ``"blog.change_article"``.

    Superusers have all permissions. Costs what ``user.has_perm()`` costs. With Django's own
    backend, these are two queries for each hit of a user who is logged in, unless the page has
    checked a permission already. Raises ValueError for wrong names.
    """
    wanted = _convert_texts(names, "names", "permissions")
    for name in wanted:
        if not all(name.partition(".")):
            raise ValueError(f"a permission must be 'app_label.codename', not {name!r}")

    @refusal("permission", _("The user has a permission that is not counted."))
    def has_permission(context: HitContext) -> bool:
        user = _logged_in_user(context)
        return user is not None and any(map(user.has_perm, wanted))

    return has_permission


def owner(of: str | Callable[[Model], object]) -> Refusal:
    """
    Refuse the owner of an object.

    Args:
        of: the name of the field with the owner, with ``__`` to follow relations; or a callable,
            or the dotted path of one, that takes an object and returns a user or the primary
            key of one.

    Costs what reading the field costs. Raises ValueError or ImportError for a wrong ``of``.
    """
    read_owner = _owner_reader(of)

    @refusal("owner", _("The user owns the object."))
    def is_owner(context: HitContext) -> bool:
        user = _logged_in_user(context)
        if user is None:
            return False
        found = read_owner(context.obj)
        return found is not None and found == (user if isinstance(found, Model) else user.pk)

    return is_owner


def _owner_reader(of: object) -> Callable[[Model], object]:
    if callable(of) or (isinstance(of, str) and "." in of):
        return conf.load_function(of)
    *relations, last = of.split("__") if isinstance(of, str) else [""]
    if not all(name.isidentifier() for name in (*relations, last)):
        raise ValueError(f"of must be the name of a field or a callable, not {of!r}")

    def read(obj: Model) -> object:
        found: Any = obj
        for name in relations:
            found = getattr(found, name, None)
        return getattr(found, _column(found, last), None)

    return read


def _column(obj: object, name: str) -> str:
    """Return ``name``, or the column of a foreign key to users: reading that costs no query."""
    fields = obj._meta.fields if isinstance(obj, Model) else ()
    field = next((field for field in fields if field.name == name), None)
    if not isinstance(field, ForeignKey) or not field.target_field.primary_key:
        return name
    return field.attname if field.related_model is get_user_model() else name


def _convert_texts(value: object, option: str, what: str) -> list[str]:
    """Return ``value`` as a list of strings. Raises ValueError, also for a single string."""
    items = [] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise ValueError(f"{option} must be a list of {what}, not {value!r}")
    return items


def _logged_in_user(context: HitContext) -> Any:
    """Return the user who is logged in, or None. A forged session is not read."""
    if is_forged(getattr(context.request, "session", None)):
        return None
    user = getattr(context.request, "user", None)
    return user if getattr(user, "is_authenticated", False) else None
