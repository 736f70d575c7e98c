"""The refusals that HITCOUNT["REFUSALS"] names, and what they say of a hit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable, signature

from django.conf import settings
from django.http import HttpRequest

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.counters.outcomes import CALLER, REASONS
from django_hitcount.db.savepoints import OpenTransactions
from django_hitcount.exceptions import TransactionLost
from django_hitcount.refusals.base import HitContext, Refusal, check_synchronous

logger = logging.getLogger("django_hitcount")


def refusal_of(
    context: HitContext,
    refuse: Callable[[HitContext], bool] | None = None,
    *,
    transactions: OpenTransactions | None = None,
) -> str | None:
    """The name of the first refusal that holds, or None to count the hit."""
    transactions = transactions or OpenTransactions()
    if refuse:
        check_synchronous(refuse)
    for item in get_refusals():
        if _holds(item.refuses, context, transactions):
            return item.name
    return CALLER if refuse and _holds(refuse, context, transactions) else None


def _holds(
    refuses: Callable[[HitContext], bool], context: HitContext, transactions: OpenTransactions
) -> bool:
    try:
        with transactions.unspoiled():
            answer = refuses(context)
            if answer and isawaitable(answer):
                raise TypeError(f"{answer!r} is no answer: nobody awaits it")
    except TransactionLost:
        raise
    except Exception:
        # Counting must not break a page, and a hit is not lost by a mistake elsewhere.
        logger.exception("A refusal failed, and refuses nothing: %r", refuses)
        return False
    return answer


def reasons() -> dict[str, str]:
    """What refusals mean, by name: those of HITCOUNT["REFUSALS"] and those with fixed names."""
    named = {refusal.name: refusal.reason for refusal in get_refusals()}
    return {name: str(reason) for name, reason in {**named, **REASONS}.items()}


def log_refused(
    refusals: Iterable[str | None], counter: str, request: HttpRequest | None = None
) -> None:
    """
    In DEBUG, say on the console which hits do not count, and why: a line for each reason.

    It is a warning, as that is what Django's own LOGGING shows of any logger.
    """
    if not settings.DEBUG:
        return
    meaning = reasons()
    for name, count in Counter(filter(None, refusals)).items():
        logger.warning(
            "%d of %r not counted%s, refusal %r: %s",
            count,
            counter,
            _sender(request),
            name,
            meaning.get(name, ""),
        )


def _sender(request: HttpRequest | None) -> str:
    if request is None:
        return ""
    user_agent = request.META.get("HTTP_USER_AGENT", "")[:_SHOWN_CHARACTERS]
    return f" ({request.method} {request.path}, User-Agent {user_agent!r})"


_SHOWN_CHARACTERS = 200
"""Of a user agent: what tells a browser from a bot stands there."""


@cached_for_settings("HITCOUNT")
def get_refusals() -> tuple[Refusal, ...]:
    """
    The refusals of this process, made at first use and anew when the setting changes.

    Raises ImproperlyConfigured if one cannot be made.
    """
    return tuple(_made(path, options) for path, options in conf.get_config().refusals)


def _made(path: str, options: Mapping[str, object]) -> Refusal:
    try:
        found = conf.imported(path)
    except ImportError as exc:
        raise conf.misconfigured(
            "REFUSALS", f"HITCOUNT['REFUSALS'] names {path!r}: {exc}.", f"Use one of {_BUILT_IN}."
        ) from exc
    try:
        made = found(**options) if options or _needs_no_options(found) else found
    except (ImportError, TypeError, ValueError) as exc:
        raise conf.misconfigured(
            "REFUSALS",
            f"HITCOUNT['REFUSALS'] gives {path!r} the OPTIONS {dict(options)!r}: {exc}.",
            f"It takes {_options_of(found)}.",
        ) from exc
    if not isinstance(made, Refusal):
        raise conf.misconfigured(
            "REFUSALS",
            f"HITCOUNT['REFUSALS'] names {path!r}, which is {made!r} and no refusal.",
            "Decorate a function with @refusal(name, reason), and give OPTIONS to what takes some.",
        )
    return made


def _needs_no_options(found: object) -> bool:
    """Whether ``found`` is no refusal, but makes one without being told anything."""
    if isinstance(found, Refusal) or not callable(found):
        return False
    try:
        signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _options_of(found: object) -> str:
    try:
        return f"the OPTIONS {', '.join(map(repr, signature(found).parameters))}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "no OPTIONS"  # A refusal as it is, or nothing that can be called.


_BUILT_IN = ", ".join(
    f"'django_hitcount.refusals.{name}'"
    for name in [
        "method",
        "prefetch",
        "bot",
        "staff",
        "groups",
        "permissions",
        "owner",
        "previews",
        "addresses",
        "user_agents",
        "do_not_track",
        "global_privacy_control",
    ]
)
