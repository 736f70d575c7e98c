"""
How visitors are hashed: only keyed hashes leave the process.

What identifies a visitor (a user id, a session key, an address) never leaves the process. It is
hashed together with the counter, so the same visitor has unrelated hashes on two objects. The
key is derived from SECRET_KEY and a random salt. Each period (a day or a month) has another key,
and the salt is deleted some time after its period. From then on, nobody can find out whether a hash
belongs to a given visitor: not from Redis, not from the database, and not with SECRET_KEY.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters.hits import AddressHash, NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.salts import salt_of
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import Breaker
from django_hitcount.visitors import RequestOrigin

VERSION = 1
"""
Version of the hash.

Increase it when you change what is hashed, so that old and new hashes are not compared.
"""

HASH_BYTES = 16
"""128 bits: two of a billion visitors have the same hash with a chance of 1 in 10^21."""

SKEW_SECONDS = 60
"""How far the clocks of two processes may differ when both check one visitor for repeats."""

FINGERPRINT_LETTERS = 8
"""32 bits are enough to distinguish the keys that a site has had in one period."""

LETTERS_OF_PERIOD = {"day": len("2026-03-10"), "month": len("2026-03"), "never": 0}
"""How many letters of a day name its period."""

logger = logging.getLogger("django_hitcount")

_breaker = Breaker("The database of visitor salts")


class VisitorKey(NamedTuple):
    """The key that visitors are hashed under in one period."""

    id: str
    """
    Version, period and fingerprint of the key, with hyphens between.

    Compare hashes only if these ids are equal. ``db.daily_visitors`` finds the day in the id of a
    key of one day, so that it reads no sketches which nothing can be merged with.
    """

    secret: bytes


class _Keys(NamedTuple):
    """The keys that all hits of one call are hashed under."""

    own: VisitorKey
    """The key of the day of the hits."""

    address: VisitorKey
    """The key of the first day of the interval."""

    recent: tuple[VisitorKey, ...]
    """The keys for VisitorHashes.recent, also those by a clock that is ahead of ours."""

    interval: tuple[str, datetime.date]
    """The interval that the address limit currently applies to: its name, and its last day."""


def add_visitors(hits: Sequence[NewHits], origin: RequestOrigin) -> Sequence[NewHits]:
    """
    Add the hashes of the visitor to hits of one counter on one day.

    Logs an error and adds nothing if a visitor key cannot be read. Costs a query when a process
    needs the key of a period for the first time, and what salt_of() costs if it is the first to.
    """
    try:
        day, repeat = hits[0].day, conf.get_config().counters[hits[0].key.counter].repeat
        keys = _read_keys(day, repeat) if isinstance(repeat, int) else _read_keys_of_day(day)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("Cannot read the visitor key, so visitors are not distinguished: %s", exc)
        return hits
    return [
        NewHits(*hit[:4], _hash_visitor(keys, origin, hit.key), hit.counts_refusal) for hit in hits
    ]


def hash_address(address: str, interval: str, day: datetime.date) -> AddressHash:
    """
    Hash an address for all counters of an interval, by its name, within a day.

    Costs what add_visitors() costs, and raises BufferUnavailable or a database error instead of
    logging it.
    """
    text = f"address\0{address}\0{interval}".encode()
    return AddressHash(interval, day, _hash(text, _read_key(_period_of(day))))


@cached_for_settings("HITCOUNT", "SECRET_KEY", maxsize=16)
def _read_keys_of_day(day: datetime.date) -> _Keys:
    """Read the keys if ``repeat`` is not a number of seconds."""
    own = _read_key(_period_of(day))
    return _Keys(own, own, (), (day.isoformat(), day))


def _period_of(day: datetime.date) -> str:
    length = LETTERS_OF_PERIOD[conf.get_config().visitor_key_rotation]
    return day.isoformat()[:length] or "never"


def _read_keys(day: datetime.date, repeat: int) -> _Keys:
    """Read the keys if ``repeat`` is a number of seconds."""
    own = _read_key(_period_of(day))
    now, zone = timezone.now().timestamp(), timezone.get_default_timezone()
    number = int(now // repeat)

    def day_at(moment: float) -> datetime.date:
        return datetime.datetime.fromtimestamp(moment, zone).date()

    # The current key, and those that an earlier hit may be under, or one by a clock that is ahead.
    recent = [_read_key(_period_of(day_at(at))) for at in (now, now - repeat, now + SKEW_SECONDS)]
    first_day, last_day = day_at(number * repeat), day_at((number + 1) * repeat)
    of_address = _read_key(_period_of(first_day))
    interval = f"{repeat}-{number}", last_day
    return _Keys(own, of_address, tuple(dict.fromkeys(recent)), interval)


def _hash_visitor(keys: _Keys, origin: RequestOrigin, key: CounterKey) -> VisitorHashes:
    """Hash a visitor of one counter, and the address whose hits are limited."""
    name, address_hash = key.text, None
    if origin.address:
        text = f"address\0{origin.address}\0{keys.interval[0]}\0{name}".encode()
        address_hash = AddressHash(*keys.interval, _hash(text, keys.address))
    if origin.identity is None:
        return VisitorHashes(keys.own.id, None, (), address_hash)
    text = f"{origin.identity}\0{name}".encode(errors="backslashreplace")
    recent = tuple([_hash(text, recent_key) for recent_key in keys.recent])
    return VisitorHashes(keys.own.id, _hash(text, keys.own), recent, address_hash)


def _hash(text: bytes, key: VisitorKey) -> bytes:
    return blake2b(text, key=key.secret, digest_size=HASH_BYTES).digest()


@cached_for_settings("HITCOUNT", "SECRET_KEY", maxsize=16)
def _read_key(period: str) -> VisitorKey:
    """Read the key of a period. Raises BufferUnavailable or a database error."""
    with _breaker.guard():
        salt = salt_of(period)
    secret = salted_hmac("django_hitcount.visitors", salt, algorithm="sha256").digest()
    fingerprint = blake2b(secret, digest_size=FINGERPRINT_LETTERS // 2).hexdigest()
    return VisitorKey(f"v{VERSION}-{period}-{fingerprint}", secret)
