"""The HITCOUNT setting: the one place that reads it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

DEFAULT_COUNTER = "views"
COUNTER_MAX_LENGTH = 50
"""Length of the ``counter`` columns: a change needs a migration."""

OBJECT_ID_MAX_LENGTH = 255
"""Length of the ``object_id`` columns: a change needs a migration."""

REFUSAL_MAX_LENGTH = 50
"""Length of the ``refusal`` column: a change needs a migration."""

VISITOR_KEY_MAX_LENGTH = 40
"""Length of the ``visitor_key`` columns: a change needs a migration."""

THROTTLE_NAME_MAX_LENGTH = 200
"""Length of the ``name`` of an admission: a change needs a migration."""

LONGEST_TIMEOUT = 60
"""In seconds. A page that waits longer for its counter is not worth the counter."""

_COUNTER_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """HITCOUNT as read: every key with its default, in lower case."""

    buffer: str = "django_hitcount.buffers.database.DatabaseBuffer"
    """Dotted path of the buffer class."""

    cache_alias: str = "hitcount"
    """Name in CACHES of the Redis that RedisBuffer uses."""

    counters: tuple[str, ...] = (DEFAULT_COUNTER,)
    """Names that hits may be recorded under; "views" is always among them."""

    partitions: int = 16
    """Shares of the Redis buffer, flushed one by one. Change it with an empty buffer."""

    slots: int = 64
    """Rows that share a counter's total between compactions, not counting slot 0."""

    redis_timeout_seconds: float = 0.25
    """Longest wait for a connection to Redis, and for an answer, unless the alias sets its own."""

    total_ttl_seconds: int = 3600
    """How long Redis keeps a running total, from when it was loaded; then it is loaded again."""

    flush_threshold: int | None = None
    """Flush a partition early once it holds more pending counters than this."""


class Problem(ValueError):
    """What is wrong with one setting, and the fix."""

    def __init__(self, setting: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.setting = setting
        self.message = message
        self.hint = hint


class Misconfigured(ImproperlyConfigured):
    """HITCOUNT does not work as it is; says why, and the fix."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def misconfigured(setting: str, message: str, hint: str) -> Misconfigured:
    """The error for a setting that is well formed and does not work all the same."""
    return Misconfigured(Problem(setting, message, hint))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise Problem(name, f"HITCOUNT[{name!r}] is {value!r}.", "Set it to a string.")
    return value


def _whole_number(low: int, high: int) -> Callable[[str, object], int]:
    def convert(name: str, value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise Problem(
                name,
                f"HITCOUNT[{name!r}] is {value!r}.",
                f"Set it to a whole number from {low} to {high}.",
            )
        return value

    return convert


def _whole_number_or_none(name: str, value: object) -> int | None:
    return None if value is None else _whole_number(1, 1_000_000)(name, value)


def _seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or value is True or not 0 < value <= LONGEST_TIMEOUT:
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] is {value!r}.",
            f"Set it to a number of seconds greater than 0, {LONGEST_TIMEOUT} at most.",
        )
    return float(value)


def _counters(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] is {value!r}.",
            'Set it to a dict of counter names, each with its options: {"downloads": {}}.',
        )
    for counter, options in value.items():
        if not is_counter_name(counter):
            raise Problem(
                name,
                f"HITCOUNT[{name!r}] declares {counter!r}.",
                "Name a counter with a lower case letter first, then lower case letters, "
                f"digits and underscores, {COUNTER_MAX_LENGTH} characters at most.",
            )
        if options != {}:
            raise Problem(
                name,
                f"HITCOUNT[{name!r}][{counter!r}] is {options!r}.",
                "A counter has no options in this version: set it to {}.",
            )
    return tuple(dict.fromkeys([DEFAULT_COUNTER, *value]))


_CONVERTERS: dict[str, Callable[[str, object], object]] = {
    "BUFFER": _text,
    "CACHE_ALIAS": _text,
    "COUNTERS": _counters,
    "PARTITIONS": _whole_number(1, 1024),
    "SLOTS": _whole_number(1, 32_767),
    "REDIS_TIMEOUT_SECONDS": _seconds,
    "TOTAL_TTL_SECONDS": _whole_number(1, 30 * 24 * 3600),
    "FLUSH_THRESHOLD": _whole_number_or_none,
}


def is_counter_name(value: object) -> bool:
    """Whether ``value`` may name a counter, declared or not."""
    return (
        isinstance(value, str)
        and len(value) <= COUNTER_MAX_LENGTH
        and _COUNTER_NAME.fullmatch(value) is not None
    )


def problems() -> list[Problem]:
    """All that is wrong with HITCOUNT, for the system checks."""
    return _read()[1]


@cache
def get_config() -> Config:
    """
    HITCOUNT as a typed, immutable object; cached until the setting changes.

    Raises ImproperlyConfigured for the first thing wrong.
    """
    values, wrong = _read()
    if wrong:
        raise Misconfigured(wrong[0]) from wrong[0]
    return Config(**values)  # type: ignore[arg-type]


def _read() -> tuple[dict[str, object], list[Problem]]:
    given = getattr(settings, "HITCOUNT", {})
    if not isinstance(given, Mapping):
        return {}, [Problem("HITCOUNT", f"HITCOUNT is {given!r}.", "Set it to a dict.")]
    values: dict[str, object] = {}
    wrong: list[Problem] = []
    for name, value in given.items():
        try:
            values[str(name).lower()] = _converter(name)(name, value)
        except Problem as problem:
            wrong.append(problem)
    return values, wrong


def _converter(name: str) -> Callable[[str, object], object]:
    try:
        return _CONVERTERS[name]
    except KeyError:
        close = difflib.get_close_matches(str(name).upper(), _CONVERTERS, n=1, cutoff=0.5)
        fix = f"Did you mean {close[0]!r}?" if close else f"Use one of {', '.join(_CONVERTERS)}."
        raise Problem(str(name), f"HITCOUNT has no setting {name!r}.", fix) from None


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "HITCOUNT":
        get_config.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_hitcount.conf")
