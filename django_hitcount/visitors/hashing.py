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
from hashlib import blake2b
from typing import NamedTuple

from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.conf.counter_options import Rotation
from django_hitcount.counters.hits import AddressHash, AddressInterval, VisitorHashes
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.salts import salt_of
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.breaker import Breaker

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


class Keyring(NamedTuple):
    """The keys that all hits of one call are hashed under."""

    own: VisitorKey
    """The key of the day of the hits."""

    recent: tuple[VisitorKey, ...]
    """The keys for VisitorHashes.recent."""

    for_addresses: tuple[VisitorKey, AddressInterval] | None = None
    """The interval of the address limit, and the key of its first day."""

    def hash_visitor(
        self, identity: str | None, key: CounterKey, address: str | None = None
    ) -> VisitorHashes:
        """Hash a visitor of one counter, and the address whose hits are limited, if given."""
        address_hash = self._hash_address(address, key) if address else None
        if identity is None:
            return VisitorHashes(self.own.id, None, (), address_hash)
        text = f"{identity}\0{key.text}".encode(errors="backslashreplace")
        recent = tuple([_hash(text, recent_key) for recent_key in self.recent])
        return VisitorHashes(self.own.id, _hash(text, self.own), recent, address_hash)

    def _hash_address(self, address: str, key: CounterKey) -> AddressHash | None:
        if self.for_addresses is None:
            return None
        address_key, interval = self.for_addresses
        text = f"address\0{address}\0{interval.name}\0{key.text}".encode()
        return AddressHash(interval, _hash(text, address_key))


def read_keyring(
    day: datetime.date, *, seconds: int | None, interval: AddressInterval | None = None
) -> Keyring | None:
    """
    Read the current keys. Logs an error and returns None if they cannot be read.

    Args:
        day: the day of the hits.
        seconds: how long after a counted hit a visitor does not count again. If the key rotates
            within that time, the keyring also has the key that the counted hit was hashed under.
        interval: the interval of the address limit, if there is a limit.

    Costs a query when a process needs the key of a period for the first time, and what salt_of()
    costs if no process has needed it before.
    """
    try:
        recent = [read_visitor_key(at) for at in _days_around(seconds)] if seconds else ()
        for_addresses = (read_visitor_key(interval.first_day), interval) if interval else None
        return Keyring(read_visitor_key(day), tuple(dict.fromkeys(recent)), for_addresses)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("Cannot read the visitor key, so visitors are not distinguished: %s", exc)
        return None


def _days_around(seconds: int) -> list[datetime.date]:
    """Return today, the day ``seconds`` ago, and today by a clock that is ahead of ours."""
    zone, now = timezone.get_default_timezone(), timezone.now()
    moments = [now + datetime.timedelta(seconds=offset) for offset in (0, -seconds, SKEW_SECONDS)]
    return [moment.astimezone(zone).date() for moment in moments]


def _hash(text: bytes, key: VisitorKey) -> bytes:
    return blake2b(text, key=key.secret, digest_size=HASH_BYTES).digest()


def read_visitor_key(day: datetime.date) -> VisitorKey:
    """
    Read the key that visitors are hashed under on ``day``.

    Costs a query once per period and process. Raises BufferUnavailable or a database error.
    """
    return _read_key(_period_of(day, conf.get_config().visitor_key_rotation))


def _period_of(day: datetime.date, rotation: Rotation) -> str:
    if rotation == "never":
        return rotation
    return day.isoformat() if rotation == "day" else day.isoformat()[:7]


@cached_for_settings("HITCOUNT", "SECRET_KEY", maxsize=16)
def _read_key(period: str) -> VisitorKey:
    with _breaker.guard():
        return _derive_key(period, salt_of(period))


def _derive_key(period: str, salt: bytes) -> VisitorKey:
    secret = salted_hmac("django_hitcount.visitors", salt, algorithm="sha256").digest()
    fingerprint = blake2b(secret, digest_size=FINGERPRINT_LETTERS // 2).hexdigest()
    return VisitorKey(f"v{VERSION}-{period}-{fingerprint}", secret)
