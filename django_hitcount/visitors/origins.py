"""
Where a request comes from: the visitor's identity, and the address that the hit limit applies to.

A client can invent visitors by sending another User-Agent each time. It cannot invent addresses: it
only has those that its network assigns to it.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from typing import NamedTuple

from django.http import HttpRequest
from django.utils import timezone

from django_hitcount.conf import CounterOptions, get_config
from django_hitcount.conf.networks import parse_network
from django_hitcount.counters.hits import AddressInterval, NewHits
from django_hitcount.visitors.addresses import client_household, is_within, parse_address
from django_hitcount.visitors.hashing import read_keyring
from django_hitcount.visitors.identity import identify

INTERNAL_NETWORKS = tuple(
    parse_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("100.64.0.0/10", "::1", "fc00::/7", "fe80::/10"),
    )
)
"""Networks that a proxy may be in, but not a client of a public site."""


class RequestOrigin(NamedTuple):
    """Where a request comes from. Kept in the memory of this process only, and never stored."""

    identity: str | None
    """How the visitor is identified; None if the counter does not need it."""

    address: str | None
    """The address whose hits ``per_address`` limits; None if there is no limit."""


def read_origin(request: HttpRequest, options: CounterOptions) -> RequestOrigin | None:
    """
    Return what a counter with ``options`` needs to know of a request; None if that is nothing.

    Users who are logged in have no address limit: a client cannot invent accounts, and a whole
    office may share one address. Costs what the identities cost.
    """
    identity = identify(request) if options.identifies_visitors else None
    is_limited = options.per_address and not (identity or "").startswith("user:")
    address = find_limited_address(request) if is_limited else None
    return RequestOrigin(identity, address) if identity or address else None


def find_limited_address(request: HttpRequest) -> str | None:
    """
    Return the address that the limit applies to, or None if it is unknown.

    The address of a proxy that TRUSTED_PROXIES does not name is ignored: all visitors would
    share its limit.
    """
    meta = request.META
    is_forwarded = bool(meta.get("HTTP_X_FORWARDED_FOR")) and not get_config().trusted_proxies
    peer = parse_address(str(meta.get("REMOTE_ADDR") or "")) if is_forwarded else None
    if is_within(peer, INTERNAL_NETWORKS):
        return None
    return client_household(meta)


def current_address_interval(options: CounterOptions, day: datetime.date) -> AddressInterval:
    """
    Return the interval that the address limit currently applies to.

    It is as long as ``repeat``, or the day of the hits if ``repeat`` is not a number of seconds.
    """
    if not isinstance(options.repeat, int):
        return AddressInterval(day.isoformat(), day, day)
    number = int(time.time() // options.repeat)
    return AddressInterval(
        f"{options.repeat}-{number}",
        _day_at(number * options.repeat),
        _day_at((number + 1) * options.repeat),
    )


def _day_at(seconds: float) -> datetime.date:
    return datetime.datetime.fromtimestamp(seconds, timezone.get_default_timezone()).date()


def add_visitors(hits: Sequence[NewHits], origin: RequestOrigin) -> Sequence[NewHits]:
    """Add the hashes of the visitor to each hit, unless the visitor keys cannot be read now."""
    options, day = get_config().counters[hits[0].key.counter], hits[0].day
    seconds = options.repeat if isinstance(options.repeat, int) else None
    interval = current_address_interval(options, day) if origin.address else None
    keyring = read_keyring(day, seconds=seconds, interval=interval)
    if keyring is None:
        return hits
    return [
        NewHits(
            hit.key,
            hit.day,
            hit.amount,
            hit.refusal,
            keyring.hash_visitor(origin.identity, hit.key, origin.address),
        )
        for hit in hits
    ]
