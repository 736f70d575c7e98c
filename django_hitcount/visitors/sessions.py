"""Read the visitor of a request from its session, without side effects on the response."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest

from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.outages.breaker import Breaker

_VISITOR_ATTRIBUTE = "_hitcount_session"
"""Attribute of the request that keeps what was read."""

_POSSIBLE_KEY = re.compile("[!-~]+").fullmatch

_breaker = Breaker("The database of sessions")


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
    visitor: SessionVisitor | None = request.__dict__.get(_VISITOR_ATTRIBUTE)
    if visitor is None:
        visitor = request.__dict__[_VISITOR_ATTRIBUTE] = _read(session)
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
