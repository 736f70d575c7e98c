"""The app of pages."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register
from django.utils.translation import gettext_lazy as _

from django_hitcount.pages.checks import check_middleware


class PagesConfig(AppConfig):
    name = "django_hitcount.pages"
    label = "hitcount_pages"
    verbose_name = _("Pages")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(check_middleware)
