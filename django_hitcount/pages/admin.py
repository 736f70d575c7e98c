"""The lists of pages and sites, with the statistics of each."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_hitcount.admin import HitCountAdmin
from django_hitcount.admin.pages import ReadOnlyAdmin
from django_hitcount.conf import get_config
from django_hitcount.pages.models import Page, WholeSite


class CounterOfPages:
    """Shows the counter of pages in place of the default one."""

    @property
    def hit_counter(self) -> str:
        return get_config().pages.counter


@admin.register(Page)
class PageAdmin(CounterOfPages, HitCountAdmin[Page], ReadOnlyAdmin):  # type: ignore[override]
    """The pages that were viewed. Deleting one deletes its hits."""

    search_fields = ("path",)
    view_on_site = False  # It would ask the content type for a Site.

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Show the site, if there may be several."""
        columns = ["shown_path", "hits_column"]
        return [*columns, "site_id"] if apps.is_installed("django.contrib.sites") else columns

    @admin.display(description=_("path"), ordering="path")
    def shown_path(self, page: Page) -> str:
        """Not the field, which may have characters that cannot be seen."""
        return str(page)


@admin.register(WholeSite)
class WholeSiteAdmin(CounterOfPages, HitCountAdmin[WholeSite], ReadOnlyAdmin):  # type: ignore[override]
    """The sites as a whole."""
