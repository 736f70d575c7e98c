"""What the session of a request tells of who sent it, read without leaving a trace."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest

from django_hitcount.outages.breaker import Breaker

_ON_REQUEST = "_hitcount_session"

_POSSIBLE_KEY = re.compile("[!-~]+").fullmatch

_breaker = Breaker("The database of sessions")


class SessionVisitor(NamedTuple):
    """What a session tells."""

    user: str | None = None
    key: str | None = None


def read_session_visitor(request: HttpRequest) -> SessionVisitor:
    """What the session tells, if there is one; read once for a request."""
    session = getattr(request, "session", None)
    if session is None or not session.session_key or is_forged(session):
        return SessionVisitor()
    told: SessionVisitor | None = request.__dict__.get(_ON_REQUEST)
    if told is None:
        told = request.__dict__[_ON_REQUEST] = _read(session)
    return told


def is_forged(session: Any) -> bool:
    """
    Whether a session has a key that no backend makes: one of other than visible ASCII.

    A client can send anything as its cookie. Databases answer with an error to a NUL, or to
    a character that their column cannot hold.
    """
    key = getattr(session, "session_key", None)
    return bool(key) and not _POSSIBLE_KEY(str(key))


def _read(session: Any) -> SessionVisitor:
    """
    Read a session and leave it as if nobody had.

    Django would tell caches that the page varies by cookie, delete the cookie of a session
    that is over, and save one that is forged.
    """
    before = session.accessed, session.modified, session.session_key
    try:
        with _breaker.guard():
            exists = bool(session.keys())
            return SessionVisitor(session.get(SESSION_KEY), session.session_key if exists else None)
    finally:
        session.accessed, session.modified, key = before
        if session.session_key != key:
            session._session_key = key
            session.__dict__.pop("_session_cache", None)  # To be loaded by whoever wants it.
