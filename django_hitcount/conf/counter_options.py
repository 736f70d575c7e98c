"""The options of one counter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from django_hitcount.conf.errors import SettingError, invalid_value
from django_hitcount.conf.limits import COUNTER_MAX_LENGTH

DEFAULT_COUNTER = "views"

Rotation = Literal["day", "month", "never"]

ROTATION_SECONDS = {"day": 23 * 3600, "month": 28 * 24 * 3600, "never": 366 * 24 * 3600}
"""
By rotation, the largest ``repeat``: the length of the shortest period.

Visitors are recognised by the keys of this period and of the one before it.
"""

HITS_PER_ADDRESS = 100
"""
The default limit of counters with a ``repeat`` rule.

It is far above what an office or a school needs, and far below what an attacker needs.
"""

MOST_HITS_PER_ADDRESS = 1_000_000_000
"""In practice no limit, and a number that every database can store."""

_COUNTER_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterOptions:
    """The options of one counter: which of its hits count, and what is counted besides."""

    repeat: int | Literal["always", "daily"] = "always"
    """When a visitor counts again: always, each calendar day, or this many seconds later."""

    visitors: bool = False
    """Whether to count the unique visitors of each object and day, too."""

    per_address: int | None = None
    """How many hits of one address count on an object per day, or per ``repeat`` interval."""

    @property
    def identifies_visitors(self) -> bool:
        """Whether hits of this counter need the identity of their visitor."""
        return self.visitors or self.repeat != "always"

    @property
    def keeps_seen_visitors(self) -> bool:
        """Whether the hashes of the visitors of each day are kept until the day is closed."""
        return self.visitors or self.repeat == "daily"


def convert_counters(name: str, value: object) -> Mapping[str, CounterOptions]:
    """Accept a dict of options by counter; add "views" if it is missing."""
    if not isinstance(value, Mapping):
        hint = 'Set it to a dict of counter names, each with its options: {"downloads": {}}.'
        raise invalid_value(name, value, hint)
    return {DEFAULT_COUNTER: CounterOptions()} | {
        _convert_counter_name(name, counter): _convert_options(name, counter, options)
        for counter, options in value.items()
    }


def _convert_counter_name(name: str, counter: object) -> str:
    if not isinstance(counter, str) or not is_counter_name(counter):
        raise SettingError(
            name,
            f"HITCOUNT[{name!r}] contains an invalid counter name: {counter!r}.",
            "Start it with a lower case letter, followed by lower case letters, digits and "
            f"underscores. Use {COUNTER_MAX_LENGTH} characters at most.",
        )
    return counter


def _convert_options(name: str, counter: str, options: object) -> CounterOptions:
    place = f"HITCOUNT[{name!r}][{counter!r}]"
    if not isinstance(options, Mapping):
        hint = 'Set it to a dict: {"repeat": "daily"}.'
        raise SettingError(name, f"Invalid value for {place}: {options!r}.", hint)
    for option, value in options.items():
        if option not in _OPTIONS:
            hint = "Use 'repeat', 'visitors' and 'per_address'."
            raise SettingError(name, f"Unknown option in {place}: {option!r}.", hint)
        is_valid, hint = _OPTIONS[option]
        if not is_valid(value):
            raise SettingError(name, f"Invalid value for {place}[{option!r}]: {value!r}.", hint)
    repeat = options.get("repeat", "always")
    return CounterOptions(
        repeat=repeat,
        visitors=options.get("visitors", False),
        per_address=options.get("per_address", None if repeat == "always" else HITS_PER_ADDRESS),
    )


def _is_repeat(value: object) -> bool:
    if type(value) is int:
        return 1 <= value <= ROTATION_SECONDS["never"]
    return isinstance(value, str) and value in {"always", "daily"}


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_limit(value: object) -> bool:
    return value is None or (type(value) is int and 1 <= value <= MOST_HITS_PER_ADDRESS)


_REPEAT_HINT = (
    "Set it to 'always', 'daily', or a whole number of seconds from 1 to "
    f"{ROTATION_SECONDS['never']}."
)
_LIMIT_HINT = f"Set it to None, or to a whole number of hits from 1 to {MOST_HITS_PER_ADDRESS}."

_OPTIONS: dict[object, tuple[Callable[[object], bool], str]] = {
    "repeat": (_is_repeat, _REPEAT_HINT),
    "visitors": (_is_flag, "Set it to True or False."),
    "per_address": (_is_limit, _LIMIT_HINT),
}
"""By option, the function that accepts its values, and the fix for others."""


def is_counter_name(value: object) -> bool:
    """Return whether ``value`` may be the name of a counter, declared or not."""
    return (
        isinstance(value, str)
        and len(value) <= COUNTER_MAX_LENGTH
        and _COUNTER_NAME.fullmatch(value) is not None
    )
