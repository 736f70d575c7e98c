"""
Refusals, the reasons not to count a hit: an ordered list of small functions, like middleware.

HITCOUNT["REFUSALS"] names them. To write one, decorate a function that returns True to refuse::

    @refusal("draft", "The page is a draft.")
    def draft(context: HitContext) -> bool:
        return "draft" in context.request.GET
"""

from __future__ import annotations

from django_hitcount.refusals.base import HitContext, Refusal, refusal
from django_hitcount.refusals.built_in import (
    addresses,
    bot,
    do_not_track,
    global_privacy_control,
    groups,
    method,
    owner,
    permissions,
    prefetch,
    previews,
    staff,
    user_agents,
)
from django_hitcount.refusals.registry import (
    find_refusal,
    get_refusals,
    log_refused,
    reasons_by_name,
    report_refused,
)

__all__ = [
    "HitContext",
    "Refusal",
    "addresses",
    "bot",
    "do_not_track",
    "find_refusal",
    "get_refusals",
    "global_privacy_control",
    "groups",
    "log_refused",
    "method",
    "owner",
    "permissions",
    "prefetch",
    "previews",
    "reasons_by_name",
    "refusal",
    "report_refused",
    "staff",
    "user_agents",
]
