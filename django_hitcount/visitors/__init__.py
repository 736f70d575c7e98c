"""
Where a request comes from: the visitor's identity, and the address that the hit limit applies to.

A client can invent visitors by sending another User-Agent each time. It cannot invent addresses: it
only has those that its network assigns to it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable, TransactionLost
from django_hitcount.outages import Breaker
from django_hitcount.visitors.addresses import client_network

Identity = Callable[[HttpRequest], str | None]

ArgumentT = TypeVar("ArgumentT")

AnswerT = TypeVar("AnswerT")

_SESSION_ATTRIBUTE = "_hitcount_session"
"""Attribute of the request that keeps what was read."""

_POSSIBLE_KEY = re.compile("[!-~]+").fullmatch

_breaker = Breaker("The database of sessions")

logger = logging.getLogger("django_hitcount")


class RequestOrigin(NamedTuple):
    """Where a request comes from. Kept in the memory of this process only, and never stored."""

    identity: str | None
    """How the visitor is identified; None if the counter does not need it."""

    address: str | None
    """The address whose hits ``per_address`` limits; None if there is no limit."""


def read_origin(request: HttpRequest, counter: str) -> RequestOrigin | None:
    """
    Return what a counter needs to know of a request; None if that is nothing.

    Users who are logged in have no address limit: a client cannot invent accounts, and a whole
    office may share one address. Neither has a proxy that TRUSTED_PROXIES does not name. Costs
    what the identities cost.
    """
    identity, address = None, None
    options = conf.get_config().counters[counter]
    if options.identifies_visitors:
        identity = identify(request, counter)
    if options.per_address and not (identity and identity.startswith("user:")):
        address = client_network(request.META, for_limit=True)
    return RequestOrigin(identity, address) if identity or address else None


def identify(request: HttpRequest, counter: str | None = None) -> str | None:
    """
    Return what identifies the visitor, or None if nothing does. It must not be stored.

    Returns the value of the first identity of get_identities() that has one. Logs what an identity
    raises. Costs what the identities cost. The built-in ones run no query, except that
    "user" and "session" read the session once.

    Raises TransactionLost if an identity has broken the transaction of the page.
    """
    for name, identity in get_identities(counter):
        try:
            if answer := identity(request):
                return f"{name}:{answer}"
        except TransactionLost:
            raise
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.error("The visitor identity %r is unavailable: %s", name, exc)
        except Exception:
            # Counting must not break a page.
            logger.exception("The visitor identity %r failed, and is ignored", name)
    return None


def user(request: HttpRequest) -> str | None:
    """
    Return the id of the user who is logged in.

    If the page has not read ``request.user`` yet, reads the id from the session. Reading the user
    would add "Cookie" to the Vary header of a page that does not depend on the user.
    """
    found = request.__dict__.get("user")
    if found is None and not hasattr(type(request), "user"):
        return None
    is_unread = isinstance(found, LazyObject) and found._wrapped is empty
    if is_unread and hasattr(request, "session"):
        return read_session_visitor(request).user
    with protect_transactions():
        found = getattr(request, "user", None)
        return str(found.pk) if found and found.is_authenticated else None


def session(request: HttpRequest) -> str | None:
    """Return the key of the session, if it exists. Never creates one."""
    return read_session_visitor(request).key


def cookie(request: HttpRequest) -> str | None:
    """Return the value of the cookie that HITCOUNT["VISITOR_COOKIE"] names."""
    name = conf.get_config().visitor_cookie
    return request.COOKIES.get(name) if name else None


def address(request: HttpRequest) -> str | None:
    """Return the client's address (for IPv6, its /64 network) and user agent."""
    found = client_network(request.META)
    return f"{found} {request.META.get('HTTP_USER_AGENT', '')}" if found else None


def browser(request: HttpRequest) -> str | None:
    """Return the user agent. Visitors with the same browser count as one."""
    return request.META.get("HTTP_USER_AGENT") or None


class SessionVisitor(NamedTuple):
    """The visitor that a session belongs to."""

    user: str | None = None
    """Id of the user who is logged in."""

    key: str | None = None
    """Key of the session, if it exists."""


def read_session_visitor(request: HttpRequest) -> SessionVisitor:
    """
    Read the visitor from the session, if the request has one.

    Costs one read of the session per request, unless the page has read it already. Raises
    BufferUnavailable while the database of sessions is away, and what the session raises.
    """
    session = getattr(request, "session", None)
    if session is None or not session.session_key or is_forged(session):
        return SessionVisitor()
    visitor: SessionVisitor | None = request.__dict__.get(_SESSION_ATTRIBUTE)
    if visitor is None:
        visitor = request.__dict__[_SESSION_ATTRIBUTE] = _read(session)
    return visitor


def is_forged(session: Any) -> bool:
    """
    Return whether a session has a key that no backend creates.

    Backends only use visible ASCII characters, but a client can send anything as its cookie.
    Databases raise an error for a NUL, and for characters that the column cannot store.
    """
    key = getattr(session, "session_key", None)
    return bool(key) and not _POSSIBLE_KEY(str(key))


def _read(session: Any) -> SessionVisitor:
    """
    Read a session, and then restore the state in which it had not been read.

    Otherwise Django would add "Cookie" to the Vary header, delete the cookie of an expired
    session, and save a session with a forged key.
    """
    before = session.accessed, session.modified, session.session_key
    try:
        with protect_transactions(), _breaker.guard():
            exists = bool(session.keys())
            return SessionVisitor(session.get(SESSION_KEY), session.session_key if exists else None)
    finally:
        session.accessed, session.modified, key = before
        if session.session_key != key:
            session._session_key = key
            session.__dict__.pop("_session_cache", None)  # If the page needs it, it loads it again.


IDENTITIES = {identity.__name__: identity for identity in (user, session, cookie, address, browser)}


@cached_for_settings("HITCOUNT")
def get_identities(counter: str | None = None) -> tuple[tuple[str, Identity], ...]:
    """
    Return the identities of a counter by name; without one, those of HITCOUNT["VISITOR_IDENTITY"].

    Cached until the setting changes. Raises ImproperlyConfigured if one does not exist.
    """
    config = conf.get_config()
    place, identities = config.identities_of(counter)
    names = [name for name in identities if name != "cookie" or config.visitor_cookie]
    return tuple((name, _load_identity(name, place)) for name in names)


def _load_identity(name: str, place: str) -> Identity:
    if name in IDENTITIES:
        return IDENTITIES[name]
    try:
        return partial(ask_protected, conf.load_function(name))
    except (ImportError, ValueError) as exc:
        raise conf.SettingError(
            place,
            f"{place} contains {name!r}, which cannot be used: {exc}.",
            f"Use {', '.join(map(repr, IDENTITIES))}, or the dotted path of a callable that takes "
            "a request and returns a string or None.",
        ) from exc


def ask_protected(function: Callable[[ArgumentT], AnswerT], argument: ArgumentT) -> AnswerT | None:
    """Ask a function of the project, which may query any database. None if the answer is false."""
    with protect_transactions():
        return function(argument) or None
