"""The values of HITCOUNT. No other module reads the setting."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings

from django_hitcount.conf import converters
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.conf.counter_options import (
    ROTATION_SECONDS,
    CounterOptions,
    Rotation,
    convert_counters,
)
from django_hitcount.conf.errors import SettingError
from django_hitcount.conf.limits import MOST_PARTITIONS
from django_hitcount.conf.networks import Network
from django_hitcount.conf.patterns import NO_PATTERNS, Patterns


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The values of HITCOUNT. Each key of the setting is a field in lower case."""

    buffer: str = "django_hitcount.buffers.database.DatabaseBuffer"
    """Dotted path of the buffer class."""

    cache_alias: str = "hitcount"
    """Name in CACHES of the Redis that RedisBuffer uses."""

    counters: Mapping[str, CounterOptions] = field(
        default_factory=lambda: convert_counters("COUNTERS", {})
    )
    """Options by counter name. "views" is always among the names."""

    refusals: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("django_hitcount.refusals.method", {}),
        ("django_hitcount.refusals.prefetch", {}),
        ("django_hitcount.refusals.bot", {}),
    )
    """Dotted paths of the refusals and their options, in the order in which they are tried."""

    bot_user_agents: Patterns = NO_PATTERNS
    """Further user agents that belong to bots."""

    not_bot_user_agents: Patterns = NO_PATTERNS
    """User agents that do not belong to bots, whatever the other patterns say."""

    trusted_proxies: int | tuple[Network, ...] = 0
    """How many proxies are in front of the site, or their networks."""

    visitor_identity: tuple[str, ...] = ("user", "session", "cookie", "address")
    """How visitors are identified: the first identity that returns something is used."""

    visitor_cookie: str | None = None
    """Name of the cookie that the identity "cookie" reads; if None, it returns nothing."""

    visitor_key_rotation: Rotation = "day"
    """How often the key that visitors are hashed under changes."""

    repeat_error_rate: float = 0.001
    """Share of new visitors that "daily" may mistake for repeat visitors."""

    partitions: int = 16
    """Parts of the Redis buffer, flushed one by one. Change it only while the buffer is empty."""

    slots: int = 64
    """Rows that share a counter's total between compactions, not counting slot 0."""

    redis_timeout_seconds: float = 0.25
    """Longest wait for a connection to Redis and for a reply, unless the alias sets its own."""

    total_ttl_seconds: int = 3600
    """How long after loading it Redis keeps a running total, before it is loaded again."""

    flush_threshold: int | None = None
    """Number of pending counters above which a partition is flushed early."""

    def options_of(self, counter: str) -> CounterOptions:
        """Return the options of a counter, or the defaults if it is no longer declared."""
        return self.counters.get(counter) or CounterOptions()


_CONVERTERS: dict[str, converters.Converter] = {
    "BUFFER": converters.convert_text,
    "CACHE_ALIAS": converters.convert_text,
    "COUNTERS": convert_counters,
    "REFUSALS": converters.convert_refusals,
    "BOT_USER_AGENTS": converters.convert_patterns,
    "NOT_BOT_USER_AGENTS": converters.convert_patterns,
    "TRUSTED_PROXIES": converters.convert_proxies,
    "VISITOR_IDENTITY": converters.convert_identities,
    "VISITOR_COOKIE": converters.convert_optional_text,
    "VISITOR_KEY_ROTATION": converters.choice_converter("day", "month", "never"),
    "REPEAT_ERROR_RATE": converters.convert_rate,
    "PARTITIONS": converters.whole_number_converter(1, MOST_PARTITIONS),
    "SLOTS": converters.whole_number_converter(1, 32_767),
    "REDIS_TIMEOUT_SECONDS": converters.convert_seconds,
    "TOTAL_TTL_SECONDS": converters.whole_number_converter(1, 30 * 24 * 3600),
    "FLUSH_THRESHOLD": converters.convert_threshold,
}


def find_setting_errors() -> list[SettingError]:
    """Return everything that is wrong with HITCOUNT, for the system checks."""
    return _read_setting()[1]


@cached_for_settings("HITCOUNT")
def get_config() -> Config:
    """
    Return HITCOUNT as a typed, immutable object; cached until the setting changes.

    Raises ImproperlyConfigured for the first error.
    """
    values, errors = _read_setting()
    if errors:
        raise errors[0]
    return Config(**values)  # type: ignore[arg-type]


def _read_setting() -> tuple[dict[str, object], list[SettingError]]:
    given = getattr(settings, "HITCOUNT", {})
    if not isinstance(given, Mapping):
        message = f"Invalid value for HITCOUNT: {given!r}."
        return {}, [SettingError("HITCOUNT", message, "Set it to a dict.")]
    values: dict[str, object] = {}
    errors: list[SettingError] = []
    for name, value in given.items():
        try:
            values[str(name).lower()] = _find_converter(name)(name, value)
        except SettingError as error:
            errors.append(error)
    if not errors:
        errors += _find_contradictions(Config(**values))  # type: ignore[arg-type]
    return values, errors


def _find_converter(name: str) -> converters.Converter:
    try:
        return _CONVERTERS[name]
    except KeyError:
        close = difflib.get_close_matches(str(name).upper(), _CONVERTERS, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]!r}?" if close else f"Use one of {', '.join(_CONVERTERS)}."
        raise SettingError(str(name), f"Unknown key in HITCOUNT: {name!r}.", hint) from None


def _find_contradictions(config: Config) -> list[SettingError]:
    """Return the errors of values that are valid alone but not together."""
    return [*_check_intervals(config), *_check_cookie(config)]


def _check_intervals(config: Config) -> list[SettingError]:
    longest = ROTATION_SECONDS[config.visitor_key_rotation]
    return [
        SettingError(
            "COUNTERS",
            f"Invalid value for HITCOUNT['COUNTERS'][{counter!r}]['repeat']: {options.repeat}. "
            f"HITCOUNT['VISITOR_KEY_ROTATION'] is {config.visitor_key_rotation!r}, so visitors "
            f"are recognised for {longest} seconds only.",
            "Use fewer seconds, or set VISITOR_KEY_ROTATION to 'month' or 'never'.",
        )
        for counter, options in config.counters.items()
        if isinstance(options.repeat, int) and options.repeat > longest
    ]


def _check_cookie(config: Config) -> list[SettingError]:
    if config.visitor_cookie or set(config.visitor_identity) != {"cookie"}:
        return []
    return [
        SettingError(
            "VISITOR_IDENTITY",
            "HITCOUNT['VISITOR_IDENTITY'] only contains 'cookie', but HITCOUNT['VISITOR_COOKIE'] "
            "is not set, so visitors cannot be distinguished.",
            "Set HITCOUNT['VISITOR_COOKIE'] to the name of your cookie.",
        )
    ]
