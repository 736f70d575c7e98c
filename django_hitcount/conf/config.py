"""The HITCOUNT setting: the one place that reads it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from django_hitcount.conf import converters
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.conf.counter_options import (
    ROTATION_SECONDS,
    CounterOptions,
    Rotation,
    convert_counters,
)
from django_hitcount.conf.limits import MOST_PARTITIONS
from django_hitcount.conf.networks import Network
from django_hitcount.conf.patterns import NO_PATTERNS, Patterns
from django_hitcount.conf.problems import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """HITCOUNT as read: every key with its default, in lower case."""

    buffer: str = "django_hitcount.buffers.database.DatabaseBuffer"
    """Dotted path of the buffer class."""

    cache_alias: str = "hitcount"
    """Name in CACHES of the Redis that RedisBuffer uses."""

    counters: Mapping[str, CounterOptions] = field(
        default_factory=lambda: convert_counters("COUNTERS", {})
    )
    """Options by the names that hits may be recorded under; "views" is always among them."""

    refusals: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("django_hitcount.refusals.method", {}),
        ("django_hitcount.refusals.prefetch", {}),
        ("django_hitcount.refusals.bot", {}),
    )
    """Dotted paths of the refusals and their options, in the order they are asked in."""

    bot_user_agents: Patterns = NO_PATTERNS
    """User agents that are bots, too."""

    not_bot_user_agents: Patterns = NO_PATTERNS
    """User agents that are no bots after all."""

    trusted_proxies: int | tuple[Network, ...] = 0
    """How many proxies stand before the site, or their networks."""

    visitor_identity: tuple[str, ...] = ("user", "session", "cookie", "address")
    """What a visitor is told by; the first that answers counts."""

    visitor_cookie: str | None = None
    """Name of the cookie that tells visitors apart; without one, no cookie does."""

    visitor_key_rotation: Rotation = "day"
    """How long a visitor can be recognised."""

    repeat_error_rate: float = 0.001
    """Share of visitors that "daily" may take for repeat visitors though they are new."""

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

    def options_of(self, counter: str) -> CounterOptions:
        """The options of a counter, or the defaults for one that is not declared any more."""
        return self.counters.get(counter) or CounterOptions()


class Misconfigured(ImproperlyConfigured):
    """HITCOUNT does not work as it is; says why, and the fix."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def misconfigured(setting: str, message: str, hint: str) -> Misconfigured:
    """The error for a setting that is well formed and does not work all the same."""
    return Misconfigured(Problem(setting, message, hint))


_CONVERTERS: dict[str, Callable[[str, object], object]] = {
    "BUFFER": converters.text,
    "CACHE_ALIAS": converters.text,
    "COUNTERS": convert_counters,
    "REFUSALS": converters.refusals,
    "BOT_USER_AGENTS": converters.patterns,
    "NOT_BOT_USER_AGENTS": converters.patterns,
    "TRUSTED_PROXIES": converters.proxies,
    "VISITOR_IDENTITY": converters.identities,
    "VISITOR_COOKIE": converters.text_or_none,
    "VISITOR_KEY_ROTATION": converters.one_of("day", "month", "never"),
    "REPEAT_ERROR_RATE": converters.rate,
    "PARTITIONS": converters.whole_number(1, MOST_PARTITIONS),
    "SLOTS": converters.whole_number(1, 32_767),
    "REDIS_TIMEOUT_SECONDS": converters.seconds,
    "TOTAL_TTL_SECONDS": converters.whole_number(1, 30 * 24 * 3600),
    "FLUSH_THRESHOLD": converters.whole_number_or_none,
}


def problems() -> list[Problem]:
    """All that is wrong with HITCOUNT, for the system checks."""
    return _read()[1]


@cached_for_settings("HITCOUNT")
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
    if not wrong:
        wrong += _contradictions(Config(**values))  # type: ignore[arg-type]
    return values, wrong


def _contradictions(config: Config) -> list[Problem]:
    """What is well formed by itself and does not go together."""
    return [*_intervals_too_long(config), *_nobody_told(config)]


def _nobody_told(config: Config) -> list[Problem]:
    if config.visitor_cookie or set(config.visitor_identity) != {"cookie"}:
        return []
    return [
        Problem(
            "VISITOR_IDENTITY",
            "HITCOUNT['VISITOR_IDENTITY'] is ['cookie'], and no cookie is named: nobody is told "
            "apart.",
            "Set HITCOUNT['VISITOR_COOKIE'] to the name of your cookie.",
        )
    ]


def _intervals_too_long(config: Config) -> list[Problem]:
    longest = ROTATION_SECONDS[config.visitor_key_rotation]
    return [
        Problem(
            "COUNTERS",
            f"HITCOUNT['COUNTERS'][{counter!r}]['repeat'] is {options.repeat} seconds, and "
            f"HITCOUNT['VISITOR_KEY_ROTATION'] is {config.visitor_key_rotation!r}: a visitor is "
            f"known for {longest} seconds only.",
            "Use fewer seconds, or let the key rotate by 'month' or 'never'.",
        )
        for counter, options in config.counters.items()
        if isinstance(options.repeat, int) and options.repeat > longest
    ]


def _converter(name: str) -> Callable[[str, object], object]:
    try:
        return _CONVERTERS[name]
    except KeyError:
        close = difflib.get_close_matches(str(name).upper(), _CONVERTERS, n=1, cutoff=0.5)
        fix = f"Did you mean {close[0]!r}?" if close else f"Use one of {', '.join(_CONVERTERS)}."
        raise Problem(str(name), f"HITCOUNT has no setting {name!r}.", fix) from None
