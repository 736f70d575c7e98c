"""The Django app."""

from __future__ import annotations

from importlib.util import find_spec

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.utils.translation import gettext_lazy as _

from django_hitcount import checks, signals


class HitCountConfig(AppConfig):
    name = "django_hitcount"
    verbose_name = _("Hit counts")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(checks.check_settings)
        register(checks.check_buffer, Tags.caches)
        register(checks.check_visitors)
        register(checks.check_patterns)
        register(checks.check_proxies)
        register(checks.check_schedule)
        register(checks.check_database)
        register(checks.check_timeouts)
        register(checks.check_keys, Tags.models)
        if find_spec("celery"):
            signals.partition_full.connect(_flush_early)


def _flush_early(partition: int, **kwargs: object) -> None:
    """Flush a partition with Celery. Imports it here, because many processes never need it."""
    from django_hitcount.tasks import flush_early

    flush_early(partition)
