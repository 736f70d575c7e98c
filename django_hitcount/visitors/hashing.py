"""
Who is asking: a visitor is a keyed hash that nobody can turn back.

What tells a visitor (a user id, a session key, an address) never leaves the process. It is
hashed together with the counter, so that the same visitor of two objects looks like two, and
under a key that rotates: made of SECRET_KEY and of a random salt, which is deleted once its
period is over. From then on, nobody can tell whether a hash was that of a given visitor: not
from Redis, not from the database, and not with SECRET_KEY.
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
"""Of the hash. Whoever changes what goes into it raises this: the numbers start anew."""


MARK_BYTES = 16

SKEW_SECONDS = 60
"""How far a hit may be behind one that was judged before it, by the clocks of their processes."""


FINGERPRINT_LETTERS = 8

logger = logging.getLogger("django_hitcount")

_breaker = Breaker("The database of visitor salts")


class VisitorKey(NamedTuple):
    """The key of one period."""

    id: str
    """Version, period and a trace of the key: equal for hashes that can be compared."""

    secret: bytes


class Keyring(NamedTuple):
    """The keys that the hits of one call are marked with: the same for all of them."""

    own: VisitorKey
    """That of the day of the hits."""

    recent: tuple[VisitorKey, ...]
    """See VisitorHashes.recent."""

    of_addresses: tuple[VisitorKey, AddressInterval] | None = None
    """That of the first day of the interval in which addresses are limited."""

    def marks(
        self, identity: str | None, key: CounterKey, address: str | None = None
    ) -> VisitorHashes:
        """The visitor of one counter, and the address that is limited, as keyed hashes."""
        of_address = self._address_mark(address, key) if address else None
        if identity is None:
            return VisitorHashes(self.own.id, None, (), of_address)
        text = f"{identity}\0{key.text}".encode(errors="backslashreplace")
        recent = tuple([_mark(text, under) for under in self.recent])
        return VisitorHashes(self.own.id, _mark(text, self.own), recent, of_address)

    def _address_mark(self, address: str, key: CounterKey) -> AddressHash | None:
        if self.of_addresses is None:
            return None
        under, interval = self.of_addresses
        text = f"address\0{address}\0{interval.name}\0{key.text}".encode()
        return AddressHash(interval, _mark(text, under))


def read_keyring(
    day: datetime.date, *, seconds: int | None, interval: AddressInterval | None = None
) -> Keyring | None:
    """
    The keys of now; None if they cannot be read.

    Args:
        day: the day of the hits.
        seconds: how long after a counted hit a visitor does not count again. The keys that
            such a hit may have been marked with are there, too, if they rotate meanwhile.
        interval: that in which the client's address is limited, if it is.

    Costs a query the first time a process needs the key of a period, one or two more if it
    is the first of all.
    """
    try:
        recent = [visitor_key(at) for at in _days_around(seconds)] if seconds else ()
        of_addresses = (visitor_key(interval.first_day), interval) if interval else None
        return Keyring(visitor_key(day), tuple(dict.fromkeys(recent)), of_addresses)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("Visitors are not told from each other: %s", exc)
        return None


def _days_around(seconds: int) -> list[datetime.date]:
    """Today, the day so many seconds ago, and that which it is elsewhere already."""
    zone, now = timezone.get_default_timezone(), timezone.now()
    moments = [now + datetime.timedelta(seconds=offset) for offset in (0, -seconds, SKEW_SECONDS)]
    return [moment.astimezone(zone).date() for moment in moments]


def _mark(text: bytes, under: VisitorKey) -> bytes:
    """128 bits of BLAKE2b, keyed; those of a billion visitors collide once in 10^21 times."""
    return blake2b(text, key=under.secret, digest_size=MARK_BYTES).digest()


def visitor_key(day: datetime.date) -> VisitorKey:
    """The key that visitors are hashed under on ``day``; costs a query once a period."""
    return _key_on(day, conf.get_config().visitor_key_rotation)


@cached_for_settings("HITCOUNT", "SECRET_KEY", maxsize=16)
def _key_on(day: datetime.date, rotation: Rotation) -> VisitorKey:
    with _breaker.guard():
        return _key_of(
            {"day": day.isoformat(), "month": day.isoformat()[:7], "never": "never"}[rotation]
        )


def _key_of(period: str) -> VisitorKey:
    salt = salt_of(period)
    secret = salted_hmac("django_hitcount.visitors", salt, algorithm="sha256").digest()
    fingerprint = blake2b(secret, digest_size=FINGERPRINT_LETTERS // 2).hexdigest()
    return VisitorKey(f"v{VERSION}-{period}-{fingerprint}", secret)
