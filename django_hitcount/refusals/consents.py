"""
Visitors who must agree before anything of them is kept: the refusal consent().

It can refuse the hit, or only its visitor. Either way, nothing of a visitor who has not agreed is
hashed or kept: whoever wants to know who made a hit asks lacks_consent() first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.exceptions import TransactionLost
from django_hitcount.refusals.registry import HitContext, Refusal, get_refusals
from django_hitcount.visitors import ask_protected

logger = logging.getLogger("django_hitcount")


@dataclass(frozen=True, slots=True)
class Consent(Refusal):
    """A refusal that also says whether the visitor of a request must stay unknown."""

    is_missing: Callable[[HttpRequest], bool]


def consent(predicate: str | Callable[[HttpRequest], bool], refuses: str = "visitor") -> Consent:
    """
    Ask whether a visitor has agreed to be counted.

    Args:
        predicate: a callable, or the dotted path of one, that takes a request and returns True if
            its visitor has agreed. Anything else means no, also an exception, which is logged: who
            has not decided yet has not agreed.
        refuses: "visitor" counts the hits of the others without a visitor: no rule applies to them.
            "hit" does not count them, as if it is only passed to a call of record_hit().

    Nothing of the others is hashed or kept, not even their address. Costs what the predicate costs,
    for each call of record_hits() that identifies visitors; with "hit", for each hit. Raises
    ValueError or ImportError for wrong arguments.
    """
    has_agreed = conf.load_function(predicate)
    if refuses not in {"visitor", "hit"}:
        raise ValueError(f"refuses must be 'visitor' or 'hit', not {refuses!r}")

    def refuses_hit(context: HitContext) -> bool:
        # If the settings do not name it, nobody else asks it before the visitor is identified.
        is_due = refuses == "hit" or made not in get_consents(context.counter)
        return is_due and made.is_missing(context.request)

    reason = _("The visitor has not agreed to be counted.")
    made = Consent("consent", reason, refuses_hit, partial(_has_not_agreed, has_agreed))
    return made


def _has_not_agreed(predicate: Callable[[HttpRequest], object], request: HttpRequest) -> bool:
    try:
        answer = ask_protected(predicate, request)
    except TransactionLost:
        raise
    except Exception:
        logger.exception("Cannot find out who has agreed, so nobody has: %r failed", predicate)
        return True
    if answer and answer is not True:
        # For instance the value of a cookie, which says "no" as well as "yes".
        logger.error("Nobody has agreed: %r returned %r, neither True nor False", predicate, answer)
    return answer is not True


@cached_for_settings("HITCOUNT")
def get_consents(counter: str) -> tuple[Consent, ...]:
    """
    Return what asks visitors of a counter: those of its own refusals, and of HITCOUNT["REFUSALS"].

    So no other list of refusals can take away what that promises to visitors. Raises
    ImproperlyConfigured if a refusal cannot be created.
    """
    named = dict.fromkeys([*get_refusals(), *get_refusals(counter)])
    return tuple(item for item in named if isinstance(item, Consent))


def lacks_consent(request: HttpRequest, counter: str) -> bool:
    """Return whether nothing of the visitor of a counter may be hashed or kept."""
    return any(item.is_missing(request) for item in get_consents(counter))
