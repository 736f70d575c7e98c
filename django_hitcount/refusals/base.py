"""What a refusal is: a named reason not to count, and the function that tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.converters import NO_PATTERNS, Patterns
from django_hitcount.sessions import is_forged

ADDRESS_LIMIT = "address_limit"
"""As many hits of the client's address have been counted as the counter's ``per_address`` says."""

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


REASONS: dict[str, str | Promise] = {
    ADDRESS_LIMIT: _("Enough hits of the client's address have been counted."),
    CALLER: _("The view that recorded the hit said so."),
    NO_REQUEST: _(
        "The template has no request: list the context processor "
        "django.template.context_processors.request."
    ),
    REPEAT: _("The visitor has been counted already."),
    UNAVAILABLE: _("Neither the buffer nor the database takes hits."),
    UNSAVED: _("The object is not saved: a preview."),
}
"""What the reserved names mean, as a sentence for people."""

RESERVED = tuple(REASONS)
"""Names that no refusal of HITCOUNT["REFUSALS"] may have."""


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

    patterns: Patterns = NO_PATTERNS
    """What it looks for in user agents, so that a check can tell how long that takes."""

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


def texts(value: object, option: str, what: str) -> list[str]:
    """``value`` as a list of strings: a single string would be taken letter by letter."""
    items = [] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise ValueError(f"{option} is {value!r}: use a list of {what}")
    return items


def user_of(ask: Ask) -> Any:
    """The user who is logged in, or None; nobody is by a session that is forged."""
    session = getattr(ask.request, "session", None)
    if session is not None and is_forged(session):
        return None
    user = getattr(ask.request, "user", None)
    return user if getattr(user, "is_authenticated", False) else None
