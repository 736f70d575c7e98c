"""
What a refusal is, which ones the settings name, and whether one of them refuses a hit.

The refusals of this package are in the folder's __init__.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, signature
from typing import NamedTuple

from django.conf import settings
from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.conf.kinds import NAME_HINT
from django_hitcount.counters.hits import CALLER, REASONS, UNAVAILABLE, NewHits
from django_hitcount.exceptions import InvalidArgument, TransactionLost
from django_hitcount.signals import hit_refused
from django_hitcount.visitors import ask_protected

PLACE = "HITCOUNT['REFUSALS']"

SHOWN_CHARACTERS = 200
"""Characters of a user agent that are logged: enough to recognise a bot."""

_made: dict[str, str | Promise] = {}  # Reasons by name, also of what only calls refuse for.

logger = logging.getLogger("django_hitcount")


class HitContext(NamedTuple):
    """The hit that a refusal decides about."""

    request: HttpRequest
    """The request that brought the hit."""

    obj: Model
    """The object that would be counted."""

    counter: str
    """The name of the counter."""

    is_beacon: bool = False
    """Whether a page from a cache has sent the hit, by ``{% hit_beacon %}``."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A named reason not to count a hit, and the function that decides whether it applies."""

    name: str
    """The value of Hit.refusal, and the name that refused hits are counted under."""

    reason: str | Promise
    """The reason as a sentence."""

    refuses: Callable[[HitContext], object]

    def __post_init__(self) -> None:
        if not conf.is_counter_name(self.name) or self.name in REASONS:
            raise ValueError(
                f"Invalid name of a refusal: {self.name!r}. {NAME_HINT} These names are reserved: "
                f"{', '.join(map(repr, REASONS))}."
            )
        _made[self.name] = self.reason


def refusal(
    name: str, reason: str | Promise, *, uses_database: bool = True
) -> Callable[[Callable[[HitContext], bool]], Refusal]:
    """
    Turn a function into a refusal that HITCOUNT["REFUSALS"] can name::

        @refusal("draft", "An editor looks at a draft.", uses_database=False)
        def draft(context: HitContext) -> bool:
            return "draft" in context.request.GET

    The ``refusals`` of a counter can name it, too, and record_hit() takes it in ``refusals``. A
    refusal is called in a thread in async views, so it may use ``request.user``.

    The function is called for each hit of a request, so it should not run queries. Pass
    ``uses_database=False`` if it never does: each hit then costs some microseconds less. If the
    function raises an exception, the exception is logged, and the hit is not refused.

    Raises ValueError for a name that is invalid or reserved, and for a coroutine function.
    """

    def decorate(refuses: Callable[[HitContext], bool]) -> Refusal:
        protected = partial(ask_protected, conf.load_function(refuses))
        return Refusal(name, reason, protected if uses_database else refuses)

    return decorate


GivenRefusal = Refusal | Callable[[HitContext], bool]
"""What a caller of record_hit() may pass in ``refusals``."""


class _Caller(NamedTuple):
    """A function that a caller of record_hit() has passed. Its name is reserved."""

    refuses: Callable[[HitContext], object]
    name: str = CALLER


AnyRefusal = Refusal | _Caller


def check_refusals(given: object) -> tuple[AnyRefusal, ...]:
    """Return ``refusals`` of a call, or what this has returned. Raises InvalidArgument."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"Invalid refusals: {given!r}. Pass a list of refusals.")
    return tuple(
        item if isinstance(item, AnyRefusal) else _Caller(_check_function(item)) for item in given
    )


def _check_function(function: Callable[[HitContext], object]) -> Callable[[HitContext], object]:
    if not callable(function):
        raise InvalidArgument(
            f"Invalid item of refusals: {function!r}. Pass a refusal such as "
            "django_hitcount.refusals.staff, not its dotted path, or a function that takes a "
            "HitContext."
        )
    return partial(ask_protected, conf.load_function(function))


def find_refusal(
    context: HitContext,
    given: Sequence[AnyRefusal] | None = None,
) -> str | None:
    """
    Return the name of the first refusal that refuses a hit, or None to count it.

    Tries those ``given``, which check_refusals() has made, in order; by default those of the
    counter. Costs what these cost. Raises TransactionLost if one of them has broken the
    transaction of the page.
    """
    for item in get_refusals(context.counter) if given is None else given:
        try:
            answer = item.refuses(context)
            if answer:
                if isawaitable(answer) or isinstance(answer, Refusal):
                    raise TypeError(f"{answer!r} is neither true nor false")
                return item.name
        except TransactionLost:
            raise
        except Exception:
            # Counting must not break a page, and an error in a refusal must not lose hits.
            logger.exception("The refusal %r failed, and is ignored: %r", item.name, item.refuses)
    return None


def reasons_by_name() -> dict[str, str]:
    """Return the reasons of all refusals that this process knows, those of the settings first."""
    places = (None, *conf.get_config().counters)
    named = {made.name: made.reason for each in places for made in get_refusals(each)}
    return {name: str(reason) for name, reason in {**_made, **named, **REASONS}.items()}


@cached_for_settings("HITCOUNT")
def get_refusals(counter: str | None = None) -> tuple[Refusal, ...]:
    """
    Return the refusals of a counter; without one, those of HITCOUNT["REFUSALS"].

    To refuse hits of one call for another reason, too, pass ``refusals=[*get_refusals("views"),
    another]`` to record_hit(). Cached until the setting changes. Raises ImproperlyConfigured if
    one cannot be created.
    """
    config = conf.get_config()
    if counter is None:
        return _make_all(PLACE, config.refusals)
    own = config.options_of(counter).refusals
    if own is None:
        return get_refusals()
    return _make_all(f"HITCOUNT['COUNTERS'][{counter!r}]['refusals']", own)


def _make_all(place: str, named: Iterable[tuple[str, Mapping[str, object]]]) -> tuple[Refusal, ...]:
    return tuple(_make_refusal(place, path, options) for path, options in named)


def _make_refusal(place: str, path: str, options: Mapping[str, object]) -> Refusal:
    try:
        found = conf.import_dotted_path(path)
    except ImportError as exc:
        message = f"{place} contains {path!r}, which cannot be imported: {exc}."
        names = conf.import_dotted_path(f"{__package__}.BUILT_IN")
        known = ", ".join(f"'{__package__}.{name}'" for name in sorted(names))
        raise conf.SettingError(place, message, f"Use one of {known}.") from exc
    made = found
    try:
        if options:
            made = found(**options)
        elif not isinstance(found, Refusal):
            with suppress(TypeError):  # It is no factory, or one that needs options.
                made = found()
    except (ImportError, TypeError, ValueError) as exc:
        given = f"OPTIONS {dict(options)!r} of {path!r}"
        message = f"Invalid {given} in {place}: {exc}."
        raise conf.SettingError(place, message, _describe_fix(found, exc)) from exc
    if not isinstance(made, Refusal):
        raise conf.SettingError(
            place,
            f"{place} contains {path!r}, which is not a refusal: {made!r}.",
            "Decorate a function with @refusal(name, reason). If the refusal takes options, set "
            "its OPTIONS.",
        )
    return made


def _describe_fix(found: object, error: Exception) -> str:
    if isinstance(error, ImportError):
        return "Correct the dotted path, or what its module imports."
    try:
        names = signature(found).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):  # A refusal without options, or something not callable.
        return "Remove the OPTIONS: it takes none."
    return f"Use the OPTIONS {', '.join(map(repr, names))}."


def report_refused(
    objs: Sequence[Model],
    hits: Sequence[NewHits],
    refusals: Sequence[str | None],
    *,
    request: HttpRequest | None,
) -> None:
    """
    Report which hits of one counter were refused; ``refusals`` has the reasons.

    Logs them, and sends hit_refused for all but those that are lost. Those that the buffer has
    refused count only if they have ``counts_refusal``.
    """
    counter, triples = hits[0].key.counter, zip(objs, hits, refusals, strict=True)
    found = [(obj, name) for obj, hit, name in triples if hit.refusal or hit.counts_refusal]
    log_refused([name for _, name in found], counter, request)
    for obj, name in found if hit_refused.receivers else ():
        if name not in (None, UNAVAILABLE):
            hit_refused.send_robust(
                obj._meta.model, obj=obj, counter=counter, refusal=name, request=request
            )


def log_refused(
    refusals: Iterable[str | None], counter: str, request: HttpRequest | None = None
) -> None:
    """
    If DEBUG is True, log how many hits are refused, and why: a line for each reason.

    The lines are warnings, since Django's default LOGGING shows the warnings of all loggers.
    """
    if not settings.DEBUG:
        return
    known = reasons_by_name()
    for name, count in Counter(filter(None, refusals)).items():
        logger.warning(
            "%d of %r not counted%s, refusal %r: %s",
            count,
            counter,
            _describe_sender(request),
            name,
            known.get(name, ""),
        )


def _describe_sender(request: HttpRequest | None) -> str:
    if request is None:
        return ""
    user_agent = request.META.get("HTTP_USER_AGENT", "")[:SHOWN_CHARACTERS]
    return f" ({request.method} {request.path}, User-Agent {user_agent!r})"
