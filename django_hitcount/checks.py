"""System checks. Each message has an id that never changes, and a hint that is the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.db import connections

from django_hitcount import conf
from django_hitcount.counters.primary_keys import HINT, key_type
from django_hitcount.exceptions import InvalidKey

VENDORS = ("sqlite", "postgresql", "mysql")
"""What Django calls the databases whose upsert and locks the tests cover."""


def check_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001: a key of HITCOUNT is unknown or has a wrong value."""
    return [
        Error(problem.message, hint=problem.hint, obj=problem.setting, id="django_hitcount.E001")
        for problem in conf.problems()
    ]


def check_buffer(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E002: the buffer cannot be made; further messages come from the buffer itself."""
    from django_hitcount.buffers import get_buffer

    if conf.problems():
        return []
    try:
        return get_buffer().check()
    except conf.Misconfigured as exc:
        return [Error(exc.problem.message, hint=exc.problem.hint, id="django_hitcount.E002")]


def check_visitors(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E004: a refusal or a visitor identity cannot be made."""
    from django_hitcount.refusals import get_refusals
    from django_hitcount.visitors.identity import get_identities

    if conf.problems():
        return []
    messages: list[CheckMessage] = []
    for make in (get_refusals, get_identities):
        try:
            make()
        except conf.Misconfigured as exc:
            problem = exc.problem
            messages.append(Error(problem.message, hint=problem.hint, id="django_hitcount.E004"))
    return messages


def check_patterns(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W007: a client can make up a user agent that a pattern takes long over."""
    from django_hitcount.visitors.bots import LONGEST_USER_AGENT
    from django_hitcount.visitors.slow_patterns import slowest_found

    return [
        CheckWarning(
            f"{place} holds {pattern.pattern!r}, which takes {slow.seconds * 1000:.0f} ms over a "
            f"user agent of {len(slow.user_agent)} characters: {slow.user_agent[:60]!r}.",
            hint=(
                "Take out a repeat within a repeat, or one of two next to each other that match "
                "the same, or write them with possessive quantifiers, such as a++."
            ),
            id="django_hitcount.W007",
        )
        for place, pattern in _patterns()
        if (slow := slowest_found(pattern, LONGEST_USER_AGENT))
    ]


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """The site's own patterns that are looked for in user agents, and where they come from."""
    from django_hitcount.refusals import get_refusals

    if conf.problems():
        return
    config = conf.get_config()
    for name in ("bot_user_agents", "not_bot_user_agents"):
        yield from ((f"HITCOUNT[{name.upper()!r}]", pattern) for pattern in getattr(config, name))
    try:
        refusals = get_refusals()
    except conf.Misconfigured:
        return  # E004 says so.
    for refusal in refusals:
        place = f"The refusal {refusal.name!r} in HITCOUNT['REFUSALS']"
        yield from ((place, pattern) for pattern in refusal.patterns)


def check_database(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """
    E003: the database is of a vendor whose upsert is not known to be exact.

    E006: it is without autocommit.
    """
    from django_hitcount.db.routing import hits_alias

    alias = hits_alias()
    vendor = connections[alias].vendor
    if vendor not in VENDORS:
        return [
            Error(
                f"The counts are kept in the database {alias!r}, which is of vendor {vendor!r}.",
                hint=(
                    "Route the app django_hitcount to a PostgreSQL, MySQL, MariaDB or SQLite "
                    "database with DATABASE_ROUTERS."
                ),
                id="django_hitcount.E003",
            )
        ]
    if not connections[alias].settings_dict["AUTOCOMMIT"]:
        return [
            Error(
                f"The counts are kept in the database {alias!r}, whose AUTOCOMMIT is False: "
                "no hit is counted.",
                hint=(
                    "Route the app django_hitcount to an alias with autocommit, of the same "
                    "database or another one, with DATABASE_ROUTERS."
                ),
                id="django_hitcount.E006",
            )
        ]
    return []


def check_keys(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E005: a model that is to be counted has a primary key that cannot be."""
    from django_hitcount.deletion import connected_models

    messages: list[CheckMessage] = []
    for model in connected_models():
        if app_configs is not None and model._meta.app_config not in app_configs:
            continue
        try:
            key_type(model)
        except InvalidKey as exc:
            message = str(exc).removesuffix(HINT).rstrip()
            messages.append(Error(message, hint=HINT, obj=model, id="django_hitcount.E005"))
    return messages


def check_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W008: the settings tell of a proxy, and its address is taken for that of all visitors."""
    named = [name for name in ("SECURE_PROXY_SSL_HEADER", "USE_X_FORWARDED_HOST") if _is_set(name)]
    if conf.problems() or not named or conf.get_config().trusted_proxies:
        return []
    limited = [name for name, of in conf.get_config().counters.items() if of.per_address]
    if not limited:
        return []
    return [
        CheckWarning(
            f"{named[0]} says that there is a proxy before the site, and "
            "HITCOUNT['TRUSTED_PROXIES'] names none: all visitors may have its address, and share "
            f"one limit of hits per address. Counters: {', '.join(map(repr, limited))}.",
            hint=(
                "Set HITCOUNT['TRUSTED_PROXIES'] to the number of proxies, or to their networks. "
                "If your server puts the client's address into REMOTE_ADDR, silence this check."
            ),
            id="django_hitcount.W008",
        )
    ]


def _is_set(name: str) -> bool:
    return bool(getattr(settings, name))


def check_schedule(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W004: Celery is installed, but nothing flushes the buffer."""
    from django_hitcount.buffers import get_buffer

    try:
        keeps_hits = get_buffer().keeps_hits
    except conf.Misconfigured:
        return []  # E001 and E002 say so.
    if not keeps_hits or not find_spec("celery") or _is_flush_scheduled():
        return []
    return [
        CheckWarning(
            "Hits wait in the buffer, and Celery beat has no entry that flushes them.",
            hint=(
                "Add them: app.conf.beat_schedule |= django_hitcount.tasks.beat_schedule(), and "
                "load the Celery app in the package of your settings. If something else runs "
                "the command flush_hits, silence this check."
            ),
            id="django_hitcount.W004",
        )
    ]


def _is_flush_scheduled() -> bool:
    from celery import current_app

    from django_hitcount.tasks import flush_hits

    if apps.is_installed("django_celery_beat"):
        return True  # Its schedule is in a table, which checks do not read.
    entries = (current_app.conf.beat_schedule or {}).values()
    return any(entry["task"] == flush_hits.name for entry in entries)
