"""Hits on their way to the buffer, and what is known of who made them."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import InvalidAmount

AMOUNT_LIMIT = 1_000_000_000
"""Largest amount of one hit: two billion such hits still fit a bigint."""


class AddressInterval(NamedTuple):
    """A time within which a limit holds: it is the same for all addresses."""

    name: str
    first_day: datetime.date
    last_day: datetime.date


class AddressHash(NamedTuple):
    """The address of a client within an interval, as a keyed hash of 128 bits."""

    interval: AddressInterval
    hash: bytes


class VisitorHashes(NamedTuple):
    """The visitor of one counter, as keyed hashes of 128 bits; see visitors.py."""

    key_id: str
    """Which key ``of_day`` is under: hashes under different ones cannot be compared."""

    of_day: bytes | None
    """Under the key of the day of the hit; None if nobody can be told."""

    recent: tuple[bytes, ...] = ()
    """
    For a rule of so many seconds: under the key of now, then under those that a hit may be
    under that forbids this one, if the key rotates meanwhile.
    """

    address: AddressHash | None = None
    """Where the hit came from, if the counter limits that."""


class NewHits(NamedTuple):
    """An amount of hits of one counter on one day, and what is known of who made them."""

    key: CounterKey
    day: datetime.date
    amount: int
    refusal: str | None = None
    """Why they do not count, if that is known before they come to the buffer."""

    visitor: VisitorHashes | None = None
    """Who made them, if the counter asks for that."""


def check_amount(amount: int) -> int:
    """``amount`` itself if it may be recorded; raises InvalidAmount if not."""
    if type(amount) is not int or amount == 0 or abs(amount) > AMOUNT_LIMIT:
        raise InvalidAmount(
            f"Cannot record an amount of {amount!r}: pass a whole number other than 0, "
            f"from -{AMOUNT_LIMIT} to {AMOUNT_LIMIT}."
        )
    return amount
