"""How visitors are identified."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable, TransactionLost
from django_hitcount.visitors.addresses import client_household
from django_hitcount.visitors.sessions import read_session_visitor

Identity = Callable[[HttpRequest], str | None]

logger = logging.getLogger("django_hitcount")


def identify(request: HttpRequest) -> str | None:
    """
    Return what identifies the visitor, or None if nothing does. It must not be stored.

    Returns the value of the first identity of HITCOUNT["VISITOR_IDENTITY"] that has one. Logs what
    an identity raises. Costs what the identities cost. The built-in ones run no query, except that
    "user" and "session" read the session once.

    Raises TransactionLost if an identity has broken the transaction of the page.
    """
    for name, identity in get_identities():
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
    return request.COOKIES.get(name) or None if name else None


def address(request: HttpRequest) -> str | None:
    """Return the client's address (for IPv6, its /64 network) and user agent."""
    found = client_household(request.META)
    return f"{found} {browser(request) or ''}" if found else None


def browser(request: HttpRequest) -> str | None:
    """Return the user agent. Visitors with the same browser count as one."""
    return request.META.get("HTTP_USER_AGENT") or None


IDENTITIES: dict[str, Identity] = {
    "user": user,
    "session": session,
    "cookie": cookie,
    "address": address,
    "browser": browser,
}


@cached_for_settings("HITCOUNT")
def get_identities() -> tuple[tuple[str, Identity], ...]:
    """
    Return the identities of HITCOUNT["VISITOR_IDENTITY"] by name; cached until it changes.

    Raises ImproperlyConfigured if one does not exist.
    """
    return tuple((name, _load_identity(name)) for name in conf.get_config().visitor_identity)


def _load_identity(name: str) -> Identity:
    if name in IDENTITIES:
        return IDENTITIES[name]
    if "." not in name:
        raise _identity_error(name, "is neither a built-in identity nor a dotted path")
    try:
        found = conf.import_dotted_path(name)
    except ImportError as exc:
        raise _identity_error(name, f"cannot be imported: {exc}") from exc
    if not callable(found) or conf.is_asynchronous(found):
        raise _identity_error(name, "is not a plain function")
    return partial(_ask_protected, found)


def _ask_protected(identity: Identity, request: HttpRequest) -> str | None:
    """Ask an identity of the project, which may query any database."""
    with protect_transactions():
        return identity(request)


def _identity_error(name: str, problem: str) -> conf.SettingError:
    return conf.SettingError(
        "VISITOR_IDENTITY",
        f"HITCOUNT['VISITOR_IDENTITY'] contains {name!r}, which {problem}.",
        f"Use {', '.join(map(repr, IDENTITIES))}, or the dotted path of a callable that takes a "
        "request and returns a string or None.",
    )
