"""
Who asks for a page: what tells the visitor, and the address whose hits are limited.

A visitor can be made up, by a browser that calls itself something else each time. An address
cannot; a client has as many as it has.
"""

from __future__ import annotations

import datetime
import time
from typing import NamedTuple

from django.http import HttpRequest
from django.utils import timezone

from django_hitcount import conf
from django_hitcount.conf import CounterOptions
from django_hitcount.conf.converters import network
from django_hitcount.counters.hits import AddressInterval
from django_hitcount.db.savepoints import OpenTransactions
from django_hitcount.visitors.addresses import client_household, is_within, parse
from django_hitcount.visitors.identity import identify

INTERNAL = tuple(
    network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("100.64.0.0/10", "::1", "fc00::/7", "fe80::/10"),
    )
)
"""Networks in which a proxy may be, but no client of a public site."""


class Client(NamedTuple):
    """What is known of who asks, for this process's memory only."""

    identity: str | None
    """What tells the visitor."""

    address: str | None
    """What the limit of hits per address goes by."""


def client_of(
    request: HttpRequest, options: CounterOptions, *, transactions: OpenTransactions
) -> Client | None:
    """
    What a counter wants to know; None if that is nothing.

    A user who is logged in has no limit: accounts cannot be made up, and an office has one
    address.
    """
    identity = identify(request, transactions=transactions) if options.tells_visitors else None
    is_limited = options.per_address and not (identity or "").startswith("user:")
    address = limited_address(request) if is_limited else None
    return Client(identity, address) if identity or address else None


def limited_address(request: HttpRequest) -> str | None:
    """
    What stands for the client whose hits are limited; None if nobody knows the address.

    A proxy that TRUSTED_PROXIES does not name is no client: all visitors would share its limit.
    """
    meta = request.META
    is_forwarded = bool(meta.get("HTTP_X_FORWARDED_FOR")) and not conf.get_config().trusted_proxies
    if is_forwarded and is_within(parse(str(meta.get("REMOTE_ADDR") or "")), INTERNAL):
        return None
    return client_household(meta)


def interval_of(options: CounterOptions, day: datetime.date) -> AddressInterval:
    """The interval that a limit holds for now: the day of the hits, or one of the rule's length."""
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
