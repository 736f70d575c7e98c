"""What each key of HITCOUNT may hold: converters check a value and give it its type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal

DEFAULT_COUNTER = "views"
COUNTER_MAX_LENGTH = 50
"""Length of the ``counter`` columns: a change needs a migration."""

LONGEST_TIMEOUT = 60
"""In seconds. A page that waits longer for its counter is not worth the counter."""

Network = IPv4Network | IPv6Network

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
    def tells_visitors(self) -> bool:
        """Is it asked who the visitor is?"""
        return self.visitors or self.repeat != "always"

    @property
    def keeps_days(self) -> bool:
        """Is it to be known who came on a day?"""
        return self.visitors or self.repeat == "daily"


class Problem(ValueError):
    """What is wrong with one setting, and the fix."""

    def __init__(self, setting: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.setting = setting
        self.message = message
        self.hint = hint


def _wrong(name: str, value: object, hint: str) -> Problem:
    return Problem(name, f"HITCOUNT[{name!r}] is {value!r}.", hint)


def text(name: str, value: object) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise _wrong(name, value, "Set it to a string.")
    return value


def text_or_none(name: str, value: object) -> str | None:
    """A string that is not empty, or None."""
    return None if value is None else text(name, value)


def whole_number(low: int, high: int) -> Callable[[str, object], int]:
    """A converter of whole numbers in a range."""

    def convert(name: str, value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _wrong(name, value, f"Set it to a whole number from {low} to {high}.")
        return value

    return convert


def whole_number_or_none(name: str, value: object) -> int | None:
    """A whole number, or None."""
    return None if value is None else whole_number(1, 1_000_000)(name, value)


def seconds(name: str, value: object) -> float:
    """A time to wait."""
    if not isinstance(value, int | float) or value is True or not 0 < value <= LONGEST_TIMEOUT:
        hint = f"Set it to a number of seconds greater than 0, {LONGEST_TIMEOUT} at most."
        raise _wrong(name, value, hint)
    return float(value)


def rate(name: str, value: object) -> float:
    """A share between one in a million and one in ten."""
    if not isinstance(value, int | float) or not 1e-6 <= value <= 0.1:
        raise _wrong(name, value, "Set it to a number from 0.000001 to 0.1, such as 0.001.")
    return float(value)


def one_of(*choices: str) -> Callable[[str, object], str]:
    """A converter of words out of a few."""

    def convert(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _wrong(name, value, f"Use one of {', '.join(map(repr, choices))}.")
        return value

    return convert


def patterns(name: str, value: object) -> Patterns:
    """Regular expressions."""
    items = _list(name, value, 'Set it to a list of regular expressions: ["^Monitor/"].')
    try:
        return compiled([text(name, item) for item in items])
    except PatternError as exc:
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] holds {exc.pattern!r}, which is no regular expression: {exc}.",
            "Correct it, or escape what is meant literally with a backslash.",
        ) from exc


class Patterns(tuple[re.Pattern[str], ...]):
    """Compiled regular expressions; case plays no part."""

    __slots__ = ()

    def match_in(self, text: str) -> bool:
        """Whether one of them is found anywhere in ``text``."""
        return any(pattern.search(text) for pattern in self)


NO_PATTERNS = Patterns()


class PatternError(ValueError):
    """A pattern is no regular expression."""

    def __init__(self, pattern: str, error: Exception) -> None:
        super().__init__(str(error))
        self.pattern = pattern


def compiled(expressions: Iterable[str]) -> Patterns:
    """Patterns; raises PatternError for the first expression that is none."""
    return Patterns(map(_compiled, expressions))


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as exc:
        raise PatternError(expression, exc) from exc


def _list(name: str, value: object, hint: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise _wrong(name, value, hint)
    return [*value]


def networks(name: str, value: object) -> tuple[Network, ...]:
    """IP networks and addresses."""
    hint = 'Set it to a list of addresses and networks: ["192.0.2.1", "2001:db8::/32"].'
    return tuple(_network(name, item) for item in _list(name, value, hint))


def _network(name: str, value: object) -> Network:
    try:
        return network(str(value))
    except ValueError as exc:
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] holds {value!r}, which is no IP address or network: {exc}.",
            'Write an address ("192.0.2.1") or a network in CIDR notation ("192.0.2.0/24").',
        ) from exc


def network(text: str) -> Network:
    """An IP network or address; raises ValueError if ``text`` is none that a client can be in."""
    found = ip_network(text)
    if isinstance(found, IPv6Network) and found.network_address.ipv4_mapped is not None:
        raise ValueError("addresses mapped to IPv6 are looked at as IPv4")
    return found


def proxies(name: str, value: object) -> int | tuple[Network, ...]:
    """How many proxies stand before the site, or their networks."""
    if type(value) is int:
        return whole_number(0, 20)(name, value)
    if not isinstance(value, list | tuple):
        raise _wrong(
            name,
            value,
            "Set it to the number of proxies between the visitor and Django, or to a list of "
            'their networks: ["10.0.0.0/8"].',
        )
    return networks(name, value)


def refusals(name: str, value: object) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Dotted paths, each with its options."""
    hint = "Set it to a list of dotted paths of refusals, in the order they are asked in."
    return tuple(_refusal(name, item) for item in _list(name, value, hint))


def _refusal(name: str, value: object) -> tuple[str, Mapping[str, object]]:
    if isinstance(value, str) and value:
        return value, {}
    if isinstance(value, Mapping) and {"NAME"} <= value.keys() <= {"NAME", "OPTIONS"}:
        options = value.get("OPTIONS", {})
        if isinstance(value["NAME"], str) and isinstance(options, Mapping):
            return value["NAME"], options
    raise Problem(
        name,
        f"HITCOUNT[{name!r}] holds {value!r}.",
        'Name a refusal by its dotted path, or, with options, as {"NAME": path, "OPTIONS": {...}}.',
    )


def identities(name: str, value: object) -> tuple[str, ...]:
    """Names of identities, or dotted paths."""
    hint = 'Set it to a list such as ["user", "session", "address"]; the first that answers counts.'
    items = _list(name, value, hint)
    if not items:
        raise _wrong(name, value, hint)
    return tuple(text(name, item) for item in items)


def counters(name: str, value: object) -> Mapping[str, CounterOptions]:
    """Options by counter; "views" is always among them."""
    if not isinstance(value, Mapping):
        raise _wrong(
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
