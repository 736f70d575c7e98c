"""What a refusal is: a named reason not to count, and the function that tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise

from django_hitcount import conf
from django_hitcount.conf.patterns import NO_PATTERNS, Patterns
from django_hitcount.counters.outcomes import RESERVED
from django_hitcount.visitors.sessions import is_forged


@dataclass(frozen=True, slots=True)
class HitContext:
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

    refuses: Callable[[HitContext], bool]

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


def refusal(name: str, reason: str | Promise) -> Callable[[Callable[[HitContext], bool]], Refusal]:
    """
    Make a function a refusal of HITCOUNT["REFUSALS"].

    It is called for each hit that a request brings, so it should cost no query. What it
    raises is logged, and refuses nothing.

    Raises ValueError for a name that is too long for its column or means something else, and
    for a coroutine function, which would refuse everything.
    """

    def decorate(refuses: Callable[[HitContext], bool]) -> Refusal:
        return Refusal(name, reason, refuses)

    return decorate


def check_synchronous(refuses: Callable[[HitContext], bool]) -> None:
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


def user_of(context: HitContext) -> Any:
    """The user who is logged in, or None; nobody is by a session that is forged."""
    session = getattr(context.request, "session", None)
    if session is not None and is_forged(session):
        return None
    user = getattr(context.request, "user", None)
    return user if getattr(user, "is_authenticated", False) else None
