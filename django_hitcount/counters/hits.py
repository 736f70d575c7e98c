"""Hits on their way to the buffer, and the hashes of the visitors who made them."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import InvalidAmount

AMOUNT_LIMIT = 1_000_000_000
"""Largest amount of one hit: two billion such hits still fit a bigint."""


class AddressInterval(NamedTuple):
    """
    The interval in which a limit per address applies: a day, or as long as ``repeat``.

    It begins at the same time for all addresses. ``first_day`` and ``last_day`` are the days on
    which it begins and ends.
    """

    name: str
    first_day: datetime.date
    last_day: datetime.date


class AddressHash(NamedTuple):
    """The address of a client, as a keyed hash of 128 bits that is only valid in one interval."""

    interval: AddressInterval
    hash: bytes


class VisitorHashes(NamedTuple):
    """The visitor of one counter, as keyed hashes of 128 bits; see visitors/hashing.py."""

    key_id: str
    """The key of ``of_day``: hashes under different keys cannot be compared."""

    of_day: bytes | None
    """The hash under the key of the day of the hit; None if the visitor cannot be identified."""

    recent: tuple[bytes, ...] = ()
    """
    If ``repeat`` is a number of seconds: the hash under the current key, then the hashes under the
    other keys that were in use within these seconds. An earlier hit may be under one of them.
    """

    address: AddressHash | None = None
    """The address of the hit, if the counter limits hits per address."""


class NewHits(NamedTuple):
    """An amount of hits of one counter on one day, and the visitor who made them."""

    key: CounterKey
    day: datetime.date
    amount: int
    refusal: str | None = None
    """Why they are refused; None if the buffer decides, or has nothing to decide."""

    visitor: VisitorHashes | None = None
    """Who made them; None if the counter does not need it."""


def check_amount(amount: int) -> int:
    """Return ``amount`` if it can be recorded; raise InvalidAmount if not."""
    if type(amount) is not int or amount == 0 or abs(amount) > AMOUNT_LIMIT:
        raise InvalidAmount(
            f"Invalid amount: {amount!r}. Pass a whole number from -{AMOUNT_LIMIT} to "
            f"{AMOUNT_LIMIT} other than 0."
        )
    return amount
