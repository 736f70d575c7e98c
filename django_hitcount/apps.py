"""The Django app."""

from __future__ import annotations

import logging
from contextlib import suppress
from importlib.util import find_spec

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from django_hitcount import checks, signals
from django_hitcount.exceptions import BufferUnavailable

logger = logging.getLogger("django_hitcount")


class HitCountConfig(AppConfig):
    name = "django_hitcount"
    verbose_name = _("Hit counts")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(checks.check_project)
        register(checks.check_buffer, Tags.caches)
        register(checks.check_deployment, Tags.caches, deploy=True)
        register(checks.check_keys, Tags.models)
        register(checks.check_orderings, Tags.urls)
        post_migrate.connect(_refresh_hits, sender=self)
        if find_spec("celery"):
            signals.partition_full.connect(_flush_early)


def _refresh_hits(using: str, **kwargs: object) -> None:
    """Refresh the hits in Redis after ``migrate`` or ``flush``, which may have changed the rows."""
    from django_hitcount.db.tables import hits_alias
    from django_hitcount.known_rows import clear_known_rows
    from django_hitcount.reading import refresh_hits

    clear_known_rows()
    with suppress(ImproperlyConfigured):  # The system checks report it.
        if using != hits_alias():
            return
        try:
            refresh_hits()
        except BufferUnavailable as exc:
            logger.warning("Totals in Redis may be old. Run manage.py refresh_hits: %s", exc)


def _flush_early(partition: int, **kwargs: object) -> None:
    """Flush a partition with Celery, without waiting for the schedule. Many processes never do."""
    from django_hitcount.tasks import flush_hits

    flush_hits.apply_async(args=[[partition]], retry=False)
