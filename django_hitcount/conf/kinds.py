"""
The kinds of values that HITCOUNT has: which are right, how to correct others, what they become.

Options of refusals are networks, patterns and dotted paths, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Generic, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

T = TypeVar("T")

Network = IPv4Network | IPv6Network

Patterns = tuple[re.Pattern[str], ...]

Options = Mapping[str, object]
"""The options of a refusal."""

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?")

_COUNTER_NAME = re.compile(r"[a-z][a-z0-9_]*")

COUNTER_MAX_LENGTH = 50
"""Columns ``counter``: long enough for any name, and short since it is part of unique keys."""

MOST_PROXIES = 20
"""Far more proxies than a request passes through at any site."""


NAME_HINT = (
    "Start it with a lower case letter, followed by lower case letters, digits and underscores. "
    f"Use {COUNTER_MAX_LENGTH} characters at most."
)
"""How to correct the name of a counter, or of a refusal."""


class SettingError(ImproperlyConfigured):
    """HITCOUNT has a wrong value: ``message`` says what is wrong, and ``hint`` how to fix it."""

    def __init__(self, place: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.place = place
        self.message = message
        self.hint = hint


def _keep(place: str, value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of values."""

    accepts: Callable[[Any], bool]

    hint: str
    """How to correct a value that is not accepted."""

    convert: Callable[[str, Any], Any] = _keep
    """Converts an accepted value. May raise SettingError, for which it also gets the place."""

    def read(self, place: str, value: object) -> T:
        """Return a value of HITCOUNT, converted. Raises SettingError if it is wrong."""
        if not self.accepts(value):
            raise SettingError(place, f"Invalid value for {place}: {value!r}.", self.hint)
        converted: T = self.convert(place, value)
        return converted


def is_counter_name(value: object) -> bool:
    """Return whether ``value`` may be the name of a counter, declared or not."""
    return (
        isinstance(value, str)
        and len(value) <= COUNTER_MAX_LENGTH
        and _COUNTER_NAME.fullmatch(value) is not None
    )


def is_text(value: object) -> bool:
    """Return whether ``value`` is a string that is not empty."""
    return isinstance(value, str) and value != ""


def is_whole_number(value: object, low: int, high: int) -> bool:
    """Return whether ``value`` is a whole number from ``low`` to ``high``, and not True."""
    return type(value) is int and low <= value <= high


def is_list(value: object) -> bool:
    """Return whether ``value`` is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_dict(value: object) -> bool:
    """Return whether ``value`` is a dict, or another mapping."""
    return isinstance(value, Mapping)


TEXT = Kind[str](is_text, "Set it to a string.")

FLAG = Kind[bool](lambda value: isinstance(value, bool), "Set it to True or False.")

SECONDS_TO_WAIT = Kind[float](
    lambda value: type(value) in {int, float} and 0 < value <= 60,
    "Set it to a number of seconds greater than 0, 60 at most.",
)
"""A page must not wait longer for a counter."""


def whole_number(low: int, high: int) -> Kind[int]:
    """Return the kind of the whole numbers from ``low`` to ``high``."""
    return Kind(
        lambda value: is_whole_number(value, low, high),
        f"Set it to a whole number from {low} to {high}.",
    )


def or_none(kind: Kind[T]) -> Kind[T | None]:
    """Return the kind of the values of another kind, and None."""
    hint = f"{kind.hint.removesuffix('.')}, or to None."
    return Kind(
        lambda value: value is None or kind.accepts(value),
        hint,
        lambda place, value: None if value is None else kind.convert(place, value),
    )


def choice(*choices: str) -> Kind[Any]:
    """Return the kind of a few texts."""
    return Kind(lambda value: value in choices, f"Use one of {', '.join(map(repr, choices))}.")


def import_dotted_path(path: str) -> Any:
    """Import what ``path`` names. Raises ImportError, also if ``path`` is not a dotted path."""
    if not all(part.isidentifier() for part in path.split(".")):
        raise ImportError(f"{path!r} is not a dotted path")
    return import_string(path)


def load_function(of: object) -> Callable[..., Any]:
    """
    Return ``of`` if it is a function, or the function that it names as a dotted path.

    Raises ImportError, or ValueError for anything else and for coroutine functions: nobody would
    await what they return.
    """
    found: Any = import_dotted_path(of) if isinstance(of, str) else of
    if not callable(found) or any(map(iscoroutinefunction, (found, type(found).__call__))):
        raise ValueError(f"{of!r} is not a plain function, without async, or the path of one")
    function: Callable[..., Any] = found
    return function


def list_of(
    convert: Callable[[Any], T], hint: str, *, of_item: str, least: int = 0
) -> Kind[tuple[T, ...]]:
    """
    Return the kind of lists of so many items at ``least``. ``of_item`` is the hint for an item.

    ``convert`` converts an item. It raises ValueError for a wrong one.
    """

    def convert_all(place: str, items: list[object]) -> tuple[T, ...]:
        try:
            return tuple(map(convert, items))
        except ValueError as exc:
            raise SettingError(place, f"{place} contains an {exc}.", of_item) from exc

    return Kind(lambda value: is_list(value) and len(value) >= least, hint, convert_all)


def check_item(accepts: Callable[[Any], object], what: str = "item") -> Callable[[Any], Any]:
    """Return a function for list_of() that takes an item as it is, if it is accepted."""

    def check(item: object) -> Any:
        if not accepts(item):
            raise ValueError(f"invalid {what}: {item!r}")
        return item

    return check


check_text = check_item(is_text)


IDENTITIES: Kind[tuple[str, ...]] = list_of(
    check_text,
    'Set it to a list such as ["user", "session", "address"], in the order in which they '
    "are tried.",
    of_item="Use a string.",
    least=1,
)


ORIGINS = list_of(
    check_item(lambda item: isinstance(item, str) and _ORIGIN.fullmatch(item), "origin"),
    'Set it to a list of origins: ["https://www.example.com"].',
    of_item='Write it without a slash at the end: "https://www.example.com".',
)


def compile_pattern(expression: str) -> re.Pattern[str]:
    """Compile a regular expression that ignores case. Raises ValueError if it is invalid."""
    try:
        return re.compile(check_text(expression), re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"invalid regular expression: {expression!r} ({exc})") from exc


def match_any(patterns: Patterns, text: str) -> bool:
    """Return whether one of the patterns matches anywhere in ``text``."""
    return any(pattern.search(text) for pattern in patterns)


PATTERNS: Kind[Patterns] = list_of(
    compile_pattern,
    'Set it to a list of regular expressions: ["^Monitor/"].',
    of_item="Use a string. Put a backslash before special characters that you mean literally.",
)


def parse_network(text: object) -> Network:
    """
    Parse an IP network or a single address.

    Raises ValueError if ``text`` is neither, and for IPv4 addresses mapped to IPv6: clients'
    addresses are never compared in that form.
    """
    try:
        network = ip_network(str(text))
        if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
            raise ValueError("addresses mapped to IPv6 are compared as IPv4")
    except ValueError as exc:
        raise ValueError(f"invalid IP address or network: '{text}' ({exc})") from exc
    return network


_NETWORKS = list_of(
    parse_network,
    f"Set it to the number of proxies between the visitor and Django, 0 to {MOST_PROXIES}, or to a "
    'list of their networks: ["10.0.0.0/8"].',
    of_item='Write an address ("192.0.2.1") or a network in CIDR notation ("192.0.2.0/24").',
)

PROXIES = Kind[int | tuple[Network, ...]](
    lambda value: is_list(value) or is_whole_number(value, 0, MOST_PROXIES),
    _NETWORKS.hint,
    lambda place, value: value if isinstance(value, int) else _NETWORKS.convert(place, value),
)


def _convert_refusal(item: object) -> tuple[str, Options]:
    named = {"NAME": item} if is_text(item) else item
    if isinstance(named, Mapping) and {"NAME"} <= named.keys() <= {"NAME", "OPTIONS"}:
        path, options = named["NAME"], named.get("OPTIONS", {})
        if isinstance(path, str) and isinstance(options, Mapping):
            return path, options
    raise ValueError(f"invalid item: {item!r}")


REFUSALS = list_of(
    _convert_refusal,
    "Set it to a list of dotted paths of refusals, in the order in which they are tried.",
    of_item='Use the dotted path of a refusal or, for options, {"NAME": path, "OPTIONS": {...}}.',
)

MANY = whole_number(1, 1_000_000)
