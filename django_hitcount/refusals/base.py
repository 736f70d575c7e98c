"""Refusals: named reasons not to count a hit, each with the function that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise

from django_hitcount import conf
from django_hitcount.counters.outcomes import RESERVED
from django_hitcount.visitors.sessions import is_forged


@dataclass(frozen=True, slots=True)
class HitContext:
    """The hit that a refusal decides about."""

    request: HttpRequest
    obj: Model
    """The object that would be counted."""

    counter: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A named reason not to count a hit, and the function that decides whether it applies."""

    name: str
    """The value of Hit.refusal, and the name that refused hits are counted under."""

    reason: str | Promise
    """The reason as a sentence."""

    refuses: Callable[[HitContext], bool]

    uses_database: bool = True
    """Whether it may query a database. Then a savepoint protects the transaction of the page."""

    def __post_init__(self) -> None:
        if not conf.is_counter_name(self.name) or self.name in RESERVED:
            raise ValueError(
                f"Invalid name of a refusal: {self.name!r}. Start it with a lower case letter, "
                "followed by lower case letters, digits and underscores. Use "
                f"{conf.REFUSAL_MAX_LENGTH} characters at most. These names are reserved: "
                f"{', '.join(map(repr, RESERVED))}."
            )
        check_synchronous(self.refuses)


def refusal(
    name: str, reason: str | Promise, *, uses_database: bool = True
) -> Callable[[Callable[[HitContext], bool]], Refusal]:
    """
    Turn a function into a refusal that HITCOUNT["REFUSALS"] can name.

    The function is called for each hit of a request, so it should not run queries. Pass
    ``uses_database=False`` if it never does: each hit then costs some microseconds less. If the
    function raises an exception, the exception is logged, and the hit is not refused.

    Raises ValueError for a name that is invalid or reserved, and for a coroutine function.
    """

    def decorate(refuses: Callable[[HitContext], bool]) -> Refusal:
        return Refusal(name, reason, refuses, uses_database=uses_database)

    return decorate


def check_synchronous(refuses: Callable[[HitContext], bool]) -> None:
    """Raise ValueError if ``refuses`` is a coroutine function: every coroutine is true."""
    if conf.is_asynchronous(refuses):
        raise ValueError(
            f"{refuses!r} is a coroutine function, which would refuse every hit: its result is "
            "not awaited. Make it a plain function."
        )


def convert_texts(value: object, option: str, what: str) -> list[str]:
    """Return ``value`` as a list of strings. Raises ValueError, also for a single string."""
    items = [] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise ValueError(f"{option} must be a list of {what}, not {value!r}")
    return items


def logged_in_user(context: HitContext) -> Any:
    """Return the user who is logged in, or None. A forged session is not read."""
    session = getattr(context.request, "session", None)
    if session is not None and is_forged(session):
        return None
    user = getattr(context.request, "user", None)
    return user if getattr(user, "is_authenticated", False) else None
