"""The options of one counter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from django_hitcount.conf.problems import Problem, wrong_value

DEFAULT_COUNTER = "views"

COUNTER_MAX_LENGTH = 50
"""Length of the ``counter`` columns: a change needs a migration."""


Rotation = Literal["day", "month", "never"]

ROTATION_SECONDS = {"day": 23 * 3600, "month": 28 * 24 * 3600, "never": 366 * 24 * 3600}
"""The longest interval between counted hits by rotation: as long as the shortest period, for
a visitor is known by the key of this period and of the one before, but no longer."""

HITS_PER_ADDRESS = 100
"""The limit where a rule counts visitors once: far above what an office or a school brings, and
far below what somebody brings who wants a high number."""

MOST_HITS_PER_ADDRESS = 1_000_000_000

_COUNTER_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterOptions:
    """How hits of one counter are counted."""

    repeat: int | Literal["always", "daily"] = "always"
    """When the same visitor counts again: always, each calendar day, or so many seconds later."""

    visitors: bool = False
    """Are the visitors of each object and day counted, too?"""

    per_address: int | None = None
    """How many hits of one address count on an object, each day or each interval of ``repeat``."""

    @property
    def identifies_visitors(self) -> bool:
        """Whether hits of this counter need the identity of their visitor."""
        return self.visitors or self.repeat != "always"

    @property
    def keeps_seen_visitors(self) -> bool:
        """Whether the visitors of each day are remembered until it is over, as hashes."""
        return self.visitors or self.repeat == "daily"


def convert_counters(name: str, value: object) -> Mapping[str, CounterOptions]:
    """Options by counter; "views" is always among them."""
    if not isinstance(value, Mapping):
        raise wrong_value(
            name,
            value,
            'Set it to a dict of counter names, each with its options: {"downloads": {}}.',
        )
    return {DEFAULT_COUNTER: CounterOptions()} | {
        _counter_name(name, counter): _counter_options(name, counter, options)
        for counter, options in value.items()
    }


def _counter_name(name: str, counter: object) -> str:
    if not isinstance(counter, str) or not is_counter_name(counter):
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] declares {counter!r}.",
            "Name a counter with a lower case letter first, then lower case letters, "
            f"digits and underscores, {COUNTER_MAX_LENGTH} characters at most.",
        )
    return counter


def _counter_options(name: str, counter: str, options: object) -> CounterOptions:
    where = f"HITCOUNT[{name!r}][{counter!r}]"
    if not isinstance(options, Mapping):
        raise Problem(name, f"{where} is {options!r}.", 'Set it to a dict: {"repeat": "daily"}.')
    for option in options.keys() - {"repeat", "visitors", "per_address"}:
        fix = "Use 'repeat', 'visitors' and 'per_address'."
        raise Problem(name, f"{where} has no option {option!r}.", fix)
    repeat, visitors = options.get("repeat", "always"), options.get("visitors", False)
    if repeat not in ("always", "daily") and not _is_interval(repeat):
        raise Problem(
            name,
            f"{where}['repeat'] is {repeat!r}.",
            "Use 'always', 'daily', or a whole number of seconds from 1 to "
            f"{ROTATION_SECONDS['never']}.",
        )
    if not isinstance(visitors, bool):
        raise Problem(name, f"{where}['visitors'] is {visitors!r}.", "Set it to True or False.")
    per_address = options.get("per_address", None if repeat == "always" else HITS_PER_ADDRESS)
    if per_address is not None and not _is_limit(per_address):
        raise Problem(
            name,
            f"{where}['per_address'] is {per_address!r}.",
            f"Use None, or a whole number of hits from 1 to {MOST_HITS_PER_ADDRESS}.",
        )
    return CounterOptions(repeat=repeat, visitors=visitors, per_address=per_address)


def _is_limit(value: object) -> bool:
    return type(value) is int and 1 <= value <= MOST_HITS_PER_ADDRESS


def _is_interval(value: object) -> bool:
    return type(value) is int and 1 <= value <= ROTATION_SECONDS["never"]


def is_counter_name(value: object) -> bool:
    """Whether ``value`` may name a counter, declared or not."""
    return (
        isinstance(value, str)
        and len(value) <= COUNTER_MAX_LENGTH
        and _COUNTER_NAME.fullmatch(value) is not None
    )
