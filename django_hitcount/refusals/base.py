"""Refusals: named reasons not to count a hit, each with the function that decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise

from django_hitcount import conf
from django_hitcount.counters.hits import REASONS
from django_hitcount.visitors import ask_protected


class HitContext(NamedTuple):
    """The hit that a refusal decides about."""

    request: HttpRequest
    obj: Model
    """The object that would be counted."""

    counter: str

    is_beacon: bool = False
    """Whether a page from a cache has sent the hit: see ``{% hit_beacon %}``."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A named reason not to count a hit, and the function that decides whether it applies."""

    name: str
    """The value of Hit.refusal, and the name that refused hits are counted under."""

    reason: str | Promise
    """The reason as a sentence."""

    refuses: Callable[[HitContext], object]

    def __post_init__(self) -> None:
        if not conf.is_counter_name(self.name) or self.name in REASONS:
            raise ValueError(
                f"Invalid name of a refusal: {self.name!r}. Start it with a lower case letter, "
                "followed by lower case letters, digits and underscores. Use "
                f"{conf.REFUSAL_MAX_LENGTH} characters at most. These names are reserved: "
                f"{', '.join(map(repr, REASONS))}."
            )


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
        protected = protect(refuses)
        return Refusal(name, reason, protected if uses_database else refuses)

    return decorate


def protect(refuses: Callable[[HitContext], object]) -> Callable[[HitContext], object]:
    """
    Make a function protect the transactions of the page from its queries.

    Raises ValueError if it is a coroutine function: every coroutine is true.
    """
    if conf.is_asynchronous(refuses):
        raise ValueError(
            f"{refuses!r} is a coroutine function, which would refuse every hit: its result is "
            "not awaited. Make it a plain function."
        )
    return partial(ask_protected, refuses)
