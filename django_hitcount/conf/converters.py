"""What each key of HITCOUNT may hold: converters check a value and give it its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django_hitcount.conf.networks import Network, parse_network
from django_hitcount.conf.patterns import PatternError, Patterns, compiled
from django_hitcount.conf.problems import Problem, wrong_value

LONGEST_TIMEOUT = 60
"""In seconds. A page that waits longer for its counter is not worth the counter."""


def text(name: str, value: object) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong_value(name, value, "Set it to a string.")
    return value


def text_or_none(name: str, value: object) -> str | None:
    """A string that is not empty, or None."""
    return None if value is None else text(name, value)


def whole_number(low: int, high: int) -> Callable[[str, object], int]:
    """A converter of whole numbers in a range."""

    def convert(name: str, value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise wrong_value(name, value, f"Set it to a whole number from {low} to {high}.")
        return value

    return convert


def whole_number_or_none(name: str, value: object) -> int | None:
    """A whole number, or None."""
    return None if value is None else whole_number(1, 1_000_000)(name, value)


def seconds(name: str, value: object) -> float:
    """A time to wait."""
    if not isinstance(value, int | float) or value is True or not 0 < value <= LONGEST_TIMEOUT:
        hint = f"Set it to a number of seconds greater than 0, {LONGEST_TIMEOUT} at most."
        raise wrong_value(name, value, hint)
    return float(value)


def rate(name: str, value: object) -> float:
    """A share between one in a million and one in ten."""
    if not isinstance(value, int | float) or not 1e-6 <= value <= 0.1:
        raise wrong_value(name, value, "Set it to a number from 0.000001 to 0.1, such as 0.001.")
    return float(value)


def one_of(*choices: str) -> Callable[[str, object], str]:
    """A converter of words out of a few."""

    def convert(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise wrong_value(name, value, f"Use one of {', '.join(map(repr, choices))}.")
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


def _list(name: str, value: object, hint: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise wrong_value(name, value, hint)
    return [*value]


def networks(name: str, value: object) -> tuple[Network, ...]:
    """IP networks and addresses."""
    hint = 'Set it to a list of addresses and networks: ["192.0.2.1", "2001:db8::/32"].'
    return tuple(_network(name, item) for item in _list(name, value, hint))


def _network(name: str, value: object) -> Network:
    try:
        return parse_network(str(value))
    except ValueError as exc:
        raise Problem(
            name,
            f"HITCOUNT[{name!r}] holds {value!r}, which is no IP address or network: {exc}.",
            'Write an address ("192.0.2.1") or a network in CIDR notation ("192.0.2.0/24").',
        ) from exc


def proxies(name: str, value: object) -> int | tuple[Network, ...]:
    """How many proxies stand before the site, or their networks."""
    if type(value) is int:
        return whole_number(0, 20)(name, value)
    if not isinstance(value, list | tuple):
        raise wrong_value(
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
        raise wrong_value(name, value, hint)
    return tuple(text(name, item) for item in items)
