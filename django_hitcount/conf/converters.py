"""
Convert the values of HITCOUNT to their types.

Each converter takes the name of a key and its value, and raises SettingError if it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django_hitcount.conf.errors import SettingError, invalid_item, invalid_value
from django_hitcount.conf.networks import Network, parse_network
from django_hitcount.conf.patterns import PatternError, Patterns, compile_patterns

LONGEST_TIMEOUT = 60
"""In seconds: a page must not wait longer for a counter."""

MOST_PROXIES = 20
"""Far more proxies than a request passes through at any site."""

LARGEST_THRESHOLD = 1_000_000
"""Pending counters of one partition. A flush of this number takes about a minute."""

Converter = Callable[[str, object], object]


def convert_text(name: str, value: object) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise invalid_value(name, value, "Set it to a string.")
    return value


def convert_optional_text(name: str, value: object) -> str | None:
    """Accept a string that is not empty, or None."""
    return None if value is None else convert_text(name, value)


def whole_number_converter(low: int, high: int) -> Callable[[str, object], int]:
    """Return a converter that accepts whole numbers from ``low`` to ``high``."""

    def convert(name: str, value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise invalid_value(name, value, f"Set it to a whole number from {low} to {high}.")
        return value

    return convert


def convert_threshold(name: str, value: object) -> int | None:
    """Accept a whole number of counters, or None."""
    return None if value is None else whole_number_converter(1, LARGEST_THRESHOLD)(name, value)


def convert_seconds(name: str, value: object) -> float:
    """Accept a number of seconds to wait."""
    if not isinstance(value, int | float) or value is True or not 0 < value <= LONGEST_TIMEOUT:
        hint = f"Set it to a number of seconds greater than 0, {LONGEST_TIMEOUT} at most."
        raise invalid_value(name, value, hint)
    return float(value)


def convert_rate(name: str, value: object) -> float:
    """Accept a share between one in a million and one in ten."""
    if not isinstance(value, int | float) or not 1e-6 <= value <= 0.1:
        raise invalid_value(name, value, "Set it to a number from 0.000001 to 0.1, such as 0.001.")
    return float(value)


def choice_converter(*choices: str) -> Callable[[str, object], str]:
    """Return a converter that accepts one of ``choices``."""

    def convert(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise invalid_value(name, value, f"Use one of {', '.join(map(repr, choices))}.")
        return value

    return convert


def convert_patterns(name: str, value: object) -> Patterns:
    """Accept a list of regular expressions."""
    items = _convert_list(name, value, 'Set it to a list of regular expressions: ["^Monitor/"].')
    try:
        return compile_patterns([_convert_item(name, item) for item in items])
    except PatternError as exc:
        hint = "Correct it. Put a backslash before special characters that you mean literally."
        raise SettingError(name, f"HITCOUNT[{name!r}] contains an {exc}.", hint) from exc


def _convert_list(name: str, value: object, hint: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise invalid_value(name, value, hint)
    return [*value]


def _convert_item(name: str, item: object) -> str:
    if not isinstance(item, str) or not item:
        raise invalid_item(name, item, "Use a string.")
    return item


def convert_networks(name: str, value: object) -> tuple[Network, ...]:
    """Accept a list of IP networks and addresses."""
    hint = 'Set it to a list of addresses and networks: ["192.0.2.1", "2001:db8::/32"].'
    return tuple(_convert_network(name, item) for item in _convert_list(name, value, hint))


def _convert_network(name: str, item: object) -> Network:
    try:
        return parse_network(str(item))
    except ValueError as exc:
        hint = 'Write an address ("192.0.2.1") or a network in CIDR notation ("192.0.2.0/24").'
        raise SettingError(name, f"HITCOUNT[{name!r}] contains an {exc}.", hint) from exc


def convert_proxies(name: str, value: object) -> int | tuple[Network, ...]:
    """Accept the number of proxies in front of the site, or a list of their networks."""
    if type(value) is int:
        return whole_number_converter(0, MOST_PROXIES)(name, value)
    if not isinstance(value, list | tuple):
        raise invalid_value(
            name,
            value,
            "Set it to the number of proxies between the visitor and Django, or to a list of "
            'their networks: ["10.0.0.0/8"].',
        )
    return convert_networks(name, value)


def convert_refusals(name: str, value: object) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Accept a list of dotted paths, each with or without options."""
    hint = "Set it to a list of dotted paths of refusals, in the order in which they are tried."
    return tuple(_convert_refusal(name, item) for item in _convert_list(name, value, hint))


def _convert_refusal(name: str, item: object) -> tuple[str, Mapping[str, object]]:
    if isinstance(item, str) and item:
        return item, {}
    if isinstance(item, Mapping) and {"NAME"} <= item.keys() <= {"NAME", "OPTIONS"}:
        options = item.get("OPTIONS", {})
        if isinstance(item["NAME"], str) and isinstance(options, Mapping):
            return item["NAME"], options
    hint = 'Use the dotted path of a refusal or, for options, {"NAME": path, "OPTIONS": {...}}.'
    raise invalid_item(name, item, hint)


def convert_identities(name: str, value: object) -> tuple[str, ...]:
    """Accept a list of names of identities, or of dotted paths."""
    hint = (
        'Set it to a list such as ["user", "session", "address"], in the order in which they '
        "are tried."
    )
    items = _convert_list(name, value, hint)
    if not items:
        raise invalid_value(name, value, hint)
    return tuple(_convert_item(name, item) for item in items)
