"""
System checks: they report errors in a project's settings before anything is counted.

apps.py registers them. The checks of the buffer come with it: those of RedisBuffer are in
buffers/redis/checks.py. Each message has an id that never changes, and a hint how to fix the
problem. docs/checks.rst explains them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from os import environ
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.urls import get_resolver

from django_hitcount import conf
from django_hitcount.counters import primary_keys
from django_hitcount.counters.keys import InvalidKey
from django_hitcount.counters.primary_keys import HINT, key_type

VENDORS = ("sqlite", "postgresql", "mysql")
"""Vendors, as Django calls them, whose upserts and locks the tests cover."""

ADVISED: dict[str, dict[str, object]] = {
    "postgresql": {
        "connect_timeout": 2,
        "tcp_user_timeout": 2000,
        "options": "-c lock_timeout=1s -c statement_timeout=5s",
    },
    "mysql": {
        "connect_timeout": 2,
        "read_timeout": 5,
        "write_timeout": 5,
        "init_command": "SET innodb_lock_wait_timeout=1, lock_wait_timeout=1",
    },
}
"""OPTIONS that limit how long a page waits, by vendor. docs/operations.rst explains them."""

TIMEOUT_NAMES = ("timeout", "max_statement_time", "max_execution_time")
"""The names of all settings that limit a wait contain one of these."""

TIMEOUT_FILES = ("service", "read_default_file", "read_default_group")
"""Options that name a file, which may contain such settings."""

TIMEOUT_VARIABLES = ("PGCONNECT_TIMEOUT", "PGOPTIONS", "PGSERVICE")
"""Variables from which libpq reads further options."""


def check_project(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterator[CheckMessage]:
    """Check HITCOUNT (E001), the database of the counts, and how visitors are identified."""
    for error in conf.find_setting_errors():
        yield _error(error, id="django_hitcount.E001")
    yield from _check_database()
    if not conf.find_setting_errors():
        yield from _check_visitors()
        yield from _check_proxies()


def _error(error: conf.SettingError, **more: Any) -> CheckMessage:
    return Error(error.message, hint=error.hint, obj=error.place, **more)


def check_buffer(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterator[CheckMessage]:
    """E002: the buffer cannot be created. If it can, check its settings (W002), and W004."""
    from django_hitcount.buffers import get_buffer

    if conf.find_setting_errors():
        return
    try:
        buffer = get_buffer()
    except conf.SettingError as exc:
        yield _error(exc, id="django_hitcount.E002")
        return
    yield from buffer.check()
    missing = _unscheduled() if buffer.keeps_hits and find_spec("celery") else []
    if missing:
        yield CheckWarning(
            "Hits wait in Redis, but the schedule of Celery beat has no entry for "
            f"{' and '.join(missing)}.",
            hint="Add the entries: app.conf.beat_schedule |= "
            "django_hitcount.tasks.beat_schedule(), and import the Celery app in the package "
            "of your settings. If you run the commands in another way, silence this check.",
            id="django_hitcount.W004",
        )


def check_deployment(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """
    Check the server of the buffer (W001, W003, W005, W006) and the database's timeouts (W009).

    Only ``check --deploy`` runs it: a site in development needs no perfect server, and
    ``makemigrations`` and an image that is being built have none.
    """
    from django_hitcount.buffers import get_buffer

    if not conf.find_setting_errors():
        with suppress(conf.SettingError):  # check_buffer() reports it.
            yield from get_buffer().check(with_server=True)
    yield from _check_timeouts()


def _unscheduled() -> list[str]:
    """Return the names of our tasks that the schedule of Celery beat lacks."""
    from celery import current_app

    from django_hitcount.tasks import compact_hits, flush_hits

    if apps.is_installed("django_celery_beat"):
        return []  # Its schedule is in the database, which checks do not query.
    entries = (current_app.conf.beat_schedule or {}).values()
    # Celery also takes a ScheduleEntry, which is no dict.
    scheduled = {each["task"] if isinstance(each, dict) else each.task for each in entries}
    return [task.name for task in (flush_hits, compact_hits) if task.name not in scheduled]


def _check_visitors() -> Iterator[CheckMessage]:
    """E004: a refusal or a visitor identity cannot be created."""
    from django_hitcount.refusals.registry import get_refusals
    from django_hitcount.visitors import get_identities

    counters = (None, *conf.get_config().counters)
    found: dict[str, conf.SettingError] = {}  # A counter may have what all have.
    for load, counter in product((get_refusals, get_identities), counters):
        try:
            load(counter)
        except conf.SettingError as exc:
            found[exc.place] = exc
    yield from (_error(error, id="django_hitcount.E004") for error in found.values())


def _check_proxies() -> Iterator[CheckMessage]:
    """W008: the settings imply a proxy, whose address may be used as that of all visitors."""
    names = ("SECURE_PROXY_SSL_HEADER", "USE_X_FORWARDED_HOST")
    implying = [name for name in names if getattr(settings, name)]
    config = conf.get_config()
    limited = [repr(name) for name, options in config.counters.items() if options.per_address]
    if config.beacon_hits_per_minute and _takes_cached_pages():
        limited.append("all together with {% hit_beacon %}")
    if implying and limited and not config.trusted_proxies:
        yield CheckWarning(
            f"{implying[0]} implies that there is a proxy in front of the site, but "
            "HITCOUNT['TRUSTED_PROXIES'] is not set. All visitors may have the proxy's address, "
            "and share one limit of hits per address. Counters: "
            f"{', '.join(limited)}.",
            hint="Set HITCOUNT['TRUSTED_PROXIES'] to the number of proxies, or to their networks. "
            "If your server puts the client's address into REMOTE_ADDR, silence this check.",
            id="django_hitcount.W008",
        )


def _takes_cached_pages() -> bool:
    """Return whether the project's URLs include ours. A project of workers may have none."""
    return _has_urls() and "django_hitcount" in get_resolver().namespace_dict


def _has_urls() -> bool:
    return bool(getattr(settings, "ROOT_URLCONF", None))


def _check_database() -> Iterator[CheckMessage]:
    """E003: the database's vendor is not supported. E006: the database has no autocommit."""
    from django_hitcount.db.tables import hits_alias

    connection = connections[hits_alias()]
    alias = connection.alias
    if connection.vendor not in VENDORS:
        yield Error(
            f"The counts are stored in the database {alias!r}, whose vendor "
            f"{connection.vendor!r} is not supported.",
            hint="Use DATABASE_ROUTERS to route the app django_hitcount to a PostgreSQL, MySQL, "
            "MariaDB or SQLite database.",
            id="django_hitcount.E003",
        )
    elif not connection.settings_dict["AUTOCOMMIT"]:
        yield Error(
            f"The counts are stored in the database {alias!r}, whose AUTOCOMMIT is False, so no "
            "hits are counted.",
            hint="Use DATABASE_ROUTERS to route the app django_hitcount to an alias with "
            "autocommit, of the same database or of another one.",
            id="django_hitcount.E006",
        )


def _check_timeouts() -> Iterator[CheckMessage]:
    """W009: no timeout limits how long a page waits for the database of the counts."""
    from django_hitcount.db.tables import hits_alias

    connection = connections[hits_alias()]
    alias, advised = connection.alias, ADVISED.get(connection.vendor)
    if advised and not _has_timeout(connection):
        yield CheckWarning(
            f"No timeout limits how long a page waits for the database {alias!r}, which stores "
            "the counts.",
            hint=f'Set DATABASES[{alias!r}]["OPTIONS"] to {advised!r}, or to the timeouts that '
            "your longest queries need.",
            id="django_hitcount.W009",
        )


def _has_timeout(connection: BaseDatabaseWrapper) -> bool:
    """
    Return whether the settings of a database contain a timeout of any kind, or may do so.

    Looks for one of the names in any text in OPTIONS: there are too many drivers and spellings to
    know them all. A project that sets one timeout is expected to know the others.
    """
    options = connection.settings_dict["OPTIONS"]
    if any(option in options for option in TIMEOUT_FILES):
        return True
    if connection.vendor == "postgresql" and any(name in environ for name in TIMEOUT_VARIABLES):
        return True
    return any(name in str(dict(options)) for name in TIMEOUT_NAMES)


def check_orderings(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """E011: a view of Django REST framework cannot order by the hits that it names."""
    if conf.find_setting_errors() or not _has_urls() or not apps.is_installed("rest_framework"):
        return
    from django_hitcount.rest_framework.filters import find_lost_orderings

    for view, names in find_lost_orderings():
        yield Error(
            f"{view.__name__} cannot order by {', '.join(map(repr, names))}: no filter of it "
            "knows these hits.",
            hint="Use django_hitcount.rest_framework.HitCountOrderingFilter in its filter_backends "
            "in place of OrderingFilter. No filter orders by the hits of other objects, such as "
            "HitCountField(source='author.hits'): leave these names out.",
            obj=view,
            id="django_hitcount.E011",
        )


def check_keys(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterator[CheckMessage]:
    """E005: a model that is counted has a primary key of an unsupported type."""
    for model in sorted(primary_keys.registered, key=lambda model: model._meta.label):
        if app_configs is None or model._meta.app_config in app_configs:
            try:
                key_type(model)
            except InvalidKey as exc:
                message = str(exc).removesuffix(HINT).rstrip()
                yield Error(message, hint=HINT, obj=model, id="django_hitcount.E005")
