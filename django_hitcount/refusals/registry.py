"""Load the refusals that HITCOUNT["REFUSALS"] names, and ask them about a hit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from inspect import isawaitable, signature

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.counters.outcomes import CALLER, REASONS
from django_hitcount.db.savepoints import protect_transactions
from django_hitcount.exceptions import TransactionLost
from django_hitcount.refusals import requests, users
from django_hitcount.refusals.base import HitContext, Refusal, check_synchronous

BUILT_IN = (*requests.__all__, *users.__all__)
"""Names of the built-in refusals, with and without options."""

_NO_PROTECTION = nullcontext()

logger = logging.getLogger("django_hitcount")


def find_refusal(
    context: HitContext, refuse: Callable[[HitContext], bool] | None = None
) -> str | None:
    """
    Return the name of the first refusal that refuses a hit, or None to count it.

    Tries HITCOUNT["REFUSALS"] in order, then ``refuse``. Costs what these cost. Raises
    TransactionLost if one of them has broken the transaction of the page.
    """
    if refuse:
        check_synchronous(refuse)
    for item in get_refusals():
        if _applies(item.refuses, context, uses_database=item.uses_database):
            return item.name
    return CALLER if refuse and _applies(refuse, context, uses_database=True) else None


def _applies(
    refuses: Callable[[HitContext], bool], context: HitContext, *, uses_database: bool
) -> bool:
    try:
        with protect_transactions() if uses_database else _NO_PROTECTION:
            answer = refuses(context)
            if answer and isawaitable(answer):
                raise TypeError(f"{answer!r} must not be awaitable")
    except TransactionLost:
        raise
    except Exception:
        # Counting must not break a page, and an error in a refusal must not lose hits.
        logger.exception("The refusal %r failed, and is ignored", refuses)
        return False
    return answer


def reasons_by_name() -> dict[str, str]:
    """Return the reasons of HITCOUNT["REFUSALS"], and those with reserved names, by name."""
    named = {refusal.name: refusal.reason for refusal in get_refusals()}
    return {name: str(reason) for name, reason in {**named, **REASONS}.items()}


@cached_for_settings("HITCOUNT")
def get_refusals() -> tuple[Refusal, ...]:
    """
    Return the refusals of HITCOUNT["REFUSALS"]; cached until it changes.

    Raises ImproperlyConfigured if one cannot be created.
    """
    return tuple(_make_refusal(path, options) for path, options in conf.get_config().refusals)


def _make_refusal(path: str, options: Mapping[str, object]) -> Refusal:
    try:
        found = conf.import_dotted_path(path)
    except ImportError as exc:
        message = f"HITCOUNT['REFUSALS'] contains {path!r}, which cannot be imported: {exc}."
        built_in = ", ".join(f"'django_hitcount.refusals.{name}'" for name in BUILT_IN)
        raise conf.SettingError("REFUSALS", message, f"Use one of {built_in}.") from exc
    try:
        made = found(**options) if options or _is_optionless_factory(found) else found
    except (ImportError, TypeError, ValueError) as exc:
        given = f"OPTIONS {dict(options)!r} of {path!r}"
        message = f"Invalid {given} in HITCOUNT['REFUSALS']: {exc}."
        raise conf.SettingError("REFUSALS", message, _describe_options(found)) from exc
    if not isinstance(made, Refusal):
        raise conf.SettingError(
            "REFUSALS",
            f"HITCOUNT['REFUSALS'] contains {path!r}, which is not a refusal: {made!r}.",
            "Decorate a function with @refusal(name, reason). If the refusal takes options, set "
            "its OPTIONS.",
        )
    return made


def _is_optionless_factory(found: object) -> bool:
    """Return whether ``found`` can be called without arguments to create a refusal."""
    if isinstance(found, Refusal) or not callable(found):
        return False
    try:
        signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _describe_options(found: object) -> str:
    try:
        names = signature(found).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):  # A refusal without options, or something not callable.
        return "Remove the OPTIONS: it takes none."
    return f"Use the OPTIONS {', '.join(map(repr, names))}."
