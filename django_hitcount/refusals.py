"""
The reasons not to count a hit: an ordered list of small functions, like middleware.

HITCOUNT["REFUSALS"] names them. To write one, decorate a function that says True to refuse::

    @refusal("preview", "An editor looks at a draft.")
    def preview(ask: Ask) -> bool:
        return "preview" in ask.request.GET
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import isawaitable, signature
from typing import Any

from django.contrib.auth import get_user_model
from django.core.signals import setting_changed
from django.db.models import ForeignKey, Model
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_hitcount import bots, conf, converters
from django_hitcount.addresses import client_address, is_within
from django_hitcount.exceptions import TransactionLost
from django_hitcount.savepoints import OpenTransactions
from django_hitcount.sessions import is_forged

CALLER = "caller"
"""The callable that record_hit() was given as ``refuse`` said so."""

NO_REQUEST = "no_request"
"""A page is rendered without a request, so that nobody looks at it."""

REPEAT = "repeat"
"""The visitor has been counted already, by the counter's ``repeat`` rule."""

UNAVAILABLE = "unavailable"
"""Neither the buffer nor the database takes hits."""

UNSAVED = "unsaved"
"""A page shows an object that is not saved: a preview."""

RESERVED = (CALLER, NO_REQUEST, REPEAT, UNAVAILABLE, UNSAVED)
"""Names that no refusal of HITCOUNT["REFUSALS"] may have."""

logger = logging.getLogger("django_hitcount")


@dataclass(frozen=True, slots=True)
class Ask:
    """What a refusal decides on."""

    request: HttpRequest
    obj: Model
    """The object that would be counted."""

    counter: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A named reason not to count, and the function that tells whether it holds."""

    name: str
    """What Hit.refusal says and refused hits are counted under."""

    reason: str | Promise
    """A sentence for people."""

    refuses: Callable[[Ask], bool]

    def __post_init__(self) -> None:
        if not conf.is_counter_name(self.name) or self.name in RESERVED:
            raise ValueError(
                f"A refusal cannot be named {self.name!r}: use a lower case letter first, then "
                "lower case letters, digits and underscores, "
                f"{conf.REFUSAL_MAX_LENGTH} characters at most, and none of "
                f"{', '.join(map(repr, RESERVED))}."
            )
        check_synchronous(self.refuses)


def refusal(name: str, reason: str | Promise) -> Callable[[Callable[[Ask], bool]], Refusal]:
    """
    Make a function a refusal of HITCOUNT["REFUSALS"].

    It is called for each hit that a request brings, so it should cost no query. What it
    raises is logged, and refuses nothing.

    Raises ValueError for a name that is too long for its column or means something else, and
    for a coroutine function, which would refuse everything.
    """

    def decorate(refuses: Callable[[Ask], bool]) -> Refusal:
        return Refusal(name, reason, refuses)

    return decorate


def check_synchronous(refuses: Callable[[Ask], bool]) -> None:
    """Raise ValueError if ``refuses`` would have to be awaited."""
    if conf.is_asynchronous(refuses):
        raise ValueError(
            f"{refuses!r} is a coroutine function, whose result nobody awaits: a coroutine is "
            "true, and would refuse everything. Make it a plain function."
        )


@refusal("method", _("The request is not a GET: nobody looks at the answer."))
def method(ask: Ask) -> bool:
    """All but GET; so HEAD, too."""
    return ask.request.method != "GET"


@refusal("prefetch", _("The browser loads the page in case somebody wants to see it."))
def prefetch(ask: Ask) -> bool:
    """What browsers say of a prefetch, a prerender or a preview."""
    headers = ask.request.META
    if headers.keys().isdisjoint(_PURPOSES):
        return False
    return any(_AHEAD(headers.get(name, "")) for name in _PURPOSES)


_PURPOSES = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_AHEAD = re.compile("prefetch|prerender|preview", re.IGNORECASE).search


@refusal("bot", _("The user agent is that of a bot, or empty."))
def bot(ask: Ask) -> bool:
    """See bots.is_bot()."""
    return bots.is_bot(ask.request.META.get("HTTP_USER_AGENT", ""))


@refusal("staff", _("The user is a member of the staff."))
def staff(ask: Ask) -> bool:
    """Costs what ``request.user`` costs, if the page has not asked for it."""
    return bool(getattr(_user(ask), "is_staff", False))


@refusal("do_not_track", _("The browser asks not to be tracked."))
def do_not_track(ask: Ask) -> bool:
    """The header ``DNT: 1``."""
    return bool(ask.request.META.get("HTTP_DNT") == "1")


@refusal("global_privacy_control", _("The browser asks for its data not to be shared."))
def global_privacy_control(ask: Ask) -> bool:
    """The header ``Sec-GPC: 1``."""
    return bool(ask.request.META.get("HTTP_SEC_GPC") == "1")


def groups(names: Iterable[str]) -> Refusal:
    """
    Refuse users who are in one of the groups with these names.

    Costs a query for each hit of a user who is logged in.
    """
    wanted = frozenset(_texts(names, "names", "group names"))

    @refusal("group", _("The user is in a group that is not counted."))
    def is_in_group(ask: Ask) -> bool:
        user = _user(ask)
        return user is not None and user.groups.filter(name__in=wanted).exists()

    return is_in_group


def owner(of: str | Callable[[Model], object]) -> Refusal:
    """
    Refuse the owner of an object.

    Args:
        of: the name of the field that holds the owner, with ``__`` to follow relations, or
            a callable, or the dotted path of one, that takes an object and returns a user
            or the primary key of one.
    """
    owner_of = _owner_of(of)

    @refusal("owner", _("The user owns the object."))
    def is_owner(ask: Ask) -> bool:
        user = _user(ask)
        if user is None:
            return False
        found = owner_of(ask.obj)
        return found is not None and found == (user if isinstance(found, Model) else user.pk)

    return is_owner


def _owner_of(of: object) -> Callable[[Model], object]:
    if isinstance(of, str) and "." in of:
        of = conf.imported(of)
    if callable(of):
        return of
    *relations, last = of.split("__") if isinstance(of, str) else [""]
    if not all(name.isidentifier() for name in (*relations, last)):
        raise ValueError(f"of is {of!r}: use the name of a field, or a callable")

    def read(obj: Model) -> object:
        found: Any = obj
        for name in relations:
            found = getattr(found, name, None)
        return getattr(found, _column(found, last), None)

    return read


def _column(obj: object, name: str) -> str:
    """Of a foreign key to users, its column: reading it costs no query."""
    fields = obj._meta.fields if isinstance(obj, Model) else ()
    field = next((field for field in fields if field.name == name), None)
    if not isinstance(field, ForeignKey) or not field.target_field.primary_key:
        return name
    return field.attname if field.related_model is get_user_model() else name


def addresses(networks: Iterable[str]) -> Refusal:
    """Refuse clients in IPv4 and IPv6 networks, in CIDR notation; see client_address()."""
    within = tuple(_network(text) for text in _texts(networks, "networks", "networks"))

    @refusal("address", _("The client has an address that is not counted."))
    def has_address(ask: Ask) -> bool:
        return is_within(client_address(ask.request.META), within)

    return has_address


def _network(text: str) -> converters.Network:
    try:
        return converters.network(text)
    except ValueError as exc:
        raise ValueError(
            f"{text!r} is no IP address or network ({exc}); write 192.0.2.1 or 192.0.2.0/24"
        ) from exc


def user_agents(patterns: Iterable[str]) -> Refusal:
    """Refuse user agents that one of these regular expressions is found in; case plays no part."""
    wanted = _texts(patterns, "patterns", "regular expressions")
    try:
        compiled = converters.compiled(wanted)
    except converters.PatternError as exc:
        raise ValueError(f"{exc.pattern!r} is no regular expression: {exc}") from exc

    @refusal("user_agent", _("The user agent is one that is not counted."))
    def has_user_agent(ask: Ask) -> bool:
        user_agent = ask.request.META.get("HTTP_USER_AGENT", "")
        return compiled.match_in(user_agent[: bots.LONGEST_USER_AGENT])

    return has_user_agent


def _texts(value: object, option: str, what: str) -> list[str]:
    """``value`` as a list of strings: a single string would be taken letter by letter."""
    items = [] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise ValueError(f"{option} is {value!r}: use a list of {what}")
    return items


def _user(ask: Ask) -> Any:
    """The user who is logged in, or None; nobody is by a session that is forged."""
    session = getattr(ask.request, "session", None)
    if session is not None and is_forged(session):
        return None
    user = getattr(ask.request, "user", None)
    return user if getattr(user, "is_authenticated", False) else None


def refusal_of(
    ask: Ask,
    refuse: Callable[[Ask], bool] | None = None,
    *,
    view: OpenTransactions | None = None,
) -> str | None:
    """The name of the first refusal that holds, or None to count the hit."""
    view = view or OpenTransactions()
    if refuse:
        check_synchronous(refuse)
    for item in get_refusals():
        if _holds(item.refuses, ask, view):
            return item.name
    return CALLER if refuse and _holds(refuse, ask, view) else None


def _holds(refuses: Callable[[Ask], bool], ask: Ask, view: OpenTransactions) -> bool:
    try:
        with view.unspoiled():
            answer = refuses(ask)
            if answer and isawaitable(answer):
                raise TypeError(f"{answer!r} is no answer: nobody awaits it")
    except TransactionLost:
        raise
    except Exception:
        # Counting must not break a page, and a hit is not lost by a mistake elsewhere.
        logger.exception("A refusal failed, and refuses nothing: %r", refuses)
        return False
    return answer


@cache
def get_refusals() -> tuple[Refusal, ...]:
    """
    The refusals of this process, made at first use and anew when the setting changes.

    Raises ImproperlyConfigured if one cannot be made.
    """
    return tuple(_made(path, options) for path, options in conf.get_config().refusals)


def _made(path: str, options: Mapping[str, object]) -> Refusal:
    try:
        found = conf.imported(path)
    except ImportError as exc:
        raise conf.misconfigured(
            "REFUSALS", f"HITCOUNT['REFUSALS'] names {path!r}: {exc}.", f"Use one of {_BUILT_IN}."
        ) from exc
    try:
        made = found(**options) if options else found
    except (ImportError, TypeError, ValueError) as exc:
        raise conf.misconfigured(
            "REFUSALS",
            f"HITCOUNT['REFUSALS'] gives {path!r} the OPTIONS {dict(options)!r}: {exc}.",
            f"It takes {_options_of(found)}.",
        ) from exc
    if not isinstance(made, Refusal):
        raise conf.misconfigured(
            "REFUSALS",
            f"HITCOUNT['REFUSALS'] names {path!r}, which is {made!r} and no refusal.",
            "Decorate a function with @refusal(name, reason), and give OPTIONS to what takes some.",
        )
    return made


def _options_of(found: object) -> str:
    try:
        return f"the OPTIONS {', '.join(map(repr, signature(found).parameters))}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "no OPTIONS"  # A refusal as it is, or nothing that can be called.


_BUILT_IN = ", ".join(
    f"'{__name__}.{name}'"
    for name in [
        "method",
        "prefetch",
        "bot",
        "staff",
        "groups",
        "owner",
        "addresses",
        "user_agents",
        "do_not_track",
        "global_privacy_control",
    ]
)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "HITCOUNT":
        get_refusals.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_hitcount.refusals")
