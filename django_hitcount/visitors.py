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
from collections.abc import Callable
from functools import cache, lru_cache
from hashlib import blake2b
from typing import NamedTuple

from django.core.signals import setting_changed
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.functional import LazyObject, empty

from django_hitcount import conf
from django_hitcount.addresses import client_household
from django_hitcount.breaker import Breaker
from django_hitcount.converters import Rotation
from django_hitcount.counters import AddressMark, CounterKey, Interval, Marks
from django_hitcount.exceptions import BufferUnavailable, TransactionLost
from django_hitcount.salts import salt_of
from django_hitcount.savepoints import OpenTransactions
from django_hitcount.sessions import told_by_session
from django_hitcount.transactions import DATABASE_ERRORS

VERSION = 1
"""Of the hash. Whoever changes what goes into it raises this: the numbers start anew."""

MARK_BYTES = 16

SKEW_SECONDS = 60
"""How far a hit may be behind one that was judged before it, by the clocks of their processes."""

FINGERPRINT_LETTERS = 8

Identity = Callable[[HttpRequest], str | None]

logger = logging.getLogger("django_hitcount")

_breaker = Breaker("The database of visitor salts")


class VisitorKey(NamedTuple):
    """The key of one period."""

    id: str
    """Version, period and a trace of the key: equal for hashes that can be compared."""

    secret: bytes


def identify(request: HttpRequest, *, view: OpenTransactions | None = None) -> str | None:
    """
    What tells the visitor, for this process's memory only; None if nothing does.

    The first of HITCOUNT["VISITOR_IDENTITY"] that answers. What one of them raises is logged.
    """
    view = view or OpenTransactions()
    for name, identity in get_identities():
        try:
            with view.unspoiled():
                if answer := identity(request):
                    return f"{name}:{answer}"
        except TransactionLost:
            raise
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.error("The visitor identity %r tells nobody: %s", name, exc)
        except Exception:
            # Counting must not break a page.
            logger.exception("The visitor identity %r failed, and tells nobody", name)
    return None


class VisitorKeys(NamedTuple):
    """The keys that the hits of one call are marked with: the same for all of them."""

    own: VisitorKey
    """That of the day of the hits."""

    recent: tuple[VisitorKey, ...]
    """See Marks.recent."""

    of_addresses: tuple[VisitorKey, Interval] | None = None
    """That of the first day of the interval in which addresses are limited."""

    def marks(self, identity: str | None, key: CounterKey, address: str | None = None) -> Marks:
        """The visitor of one counter, and the address that is limited, as keyed hashes."""
        of_address = self._address_mark(address, key) if address else None
        if identity is None:
            return Marks(self.own.id, None, (), of_address)
        text = f"{identity}\0{key.text}".encode(errors="backslashreplace")
        recent = tuple([_mark(text, under) for under in self.recent])
        return Marks(self.own.id, _mark(text, self.own), recent, of_address)

    def _address_mark(self, address: str, key: CounterKey) -> AddressMark | None:
        if self.of_addresses is None:
            return None
        under, interval = self.of_addresses
        text = f"address\0{address}\0{interval.name}\0{key.text}".encode()
        return AddressMark(interval, _mark(text, under))


def visitor_keys(
    day: datetime.date, *, seconds: int | None, interval: Interval | None = None
) -> VisitorKeys | None:
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
        return VisitorKeys(visitor_key(day), tuple(dict.fromkeys(recent)), of_addresses)
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


@lru_cache(maxsize=16)
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


def user(request: HttpRequest) -> str | None:
    """
    The id of the user who is logged in.

    A ``request.user`` that nobody has asked for yet is left alone: the session knows the id,
    too, and a page that does not depend on its user is not to say so in its Vary header.
    """
    found = getattr(request, "user", None)
    is_unknown = isinstance(found, LazyObject) and found._wrapped is empty
    if is_unknown and hasattr(request, "session"):
        return told_by_session(request).user
    return str(found.pk) if found and found.is_authenticated else None


def session(request: HttpRequest) -> str | None:
    """The key of a session that exists; none is made."""
    return told_by_session(request).key


def cookie(request: HttpRequest) -> str | None:
    """The cookie that HITCOUNT["VISITOR_COOKIE"] names."""
    name = conf.get_config().visitor_cookie
    return request.COOKIES.get(name) or None if name else None


def address(request: HttpRequest) -> str | None:
    """The client's address (of IPv6, the /64 network) and user agent."""
    found = client_household(request.META)
    return f"{found} {browser(request) or ''}" if found else None


def browser(request: HttpRequest) -> str | None:
    """The user agent alone: visitors are then kinds of browsers."""
    return request.META.get("HTTP_USER_AGENT") or None


IDENTITIES: dict[str, Identity] = {
    "user": user,
    "session": session,
    "cookie": cookie,
    "address": address,
    "browser": browser,
}


@cache
def get_identities() -> tuple[tuple[str, Identity], ...]:
    """
    The identities of this process by name, made at first use and anew with the setting.

    Raises ImproperlyConfigured if one is unknown.
    """
    return tuple((name, _identity(name)) for name in conf.get_config().visitor_identity)


def _identity(name: str) -> Identity:
    if name in IDENTITIES:
        return IDENTITIES[name]
    problem = "is none of ours and no dotted path" if "." not in name else "is no plain function"
    try:
        found = conf.imported(name) if "." in name else None
    except ImportError as exc:
        found, problem = None, f"cannot be imported: {exc}"
    if not callable(found) or conf.is_asynchronous(found):
        raise conf.misconfigured(
            "VISITOR_IDENTITY",
            f"HITCOUNT['VISITOR_IDENTITY'] names {name!r}, which {problem}.",
            f"Use {', '.join(map(repr, IDENTITIES))}, or the dotted path of a callable that "
            "takes a request and returns a string or None.",
        )
    identity: Identity = found
    return identity


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in {"HITCOUNT", "SECRET_KEY"}:
        get_identities.cache_clear()
        _key_on.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_hitcount.visitors")
