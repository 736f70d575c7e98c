"""What all our pages in the admin have: a trail of links, links to objects, and files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode

import django
from django.apps import apps
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

HAS_LIST_OF_CRUMBS = django.VERSION >= (6, 1)
"""Whether the trail is an ordered list; before, it was a text with separators."""


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Lets nobody add, change or delete anything, whatever their permissions."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class Crumb(NamedTuple):
    """One step of the trail."""

    label: str
    url: str = ""
    """Empty for the page itself, and for steps that the user may not open."""


def crumbs_of_model(model_admin: ModelAdmin[Any], request: HttpRequest) -> list[Crumb]:
    """Return the trail from the index of the admin to the list of objects of a model."""
    opts, site = model_admin.opts, model_admin.admin_site
    app_config = apps.get_app_config(opts.app_label)
    return [
        Crumb(_("Home"), reverse("admin:index", current_app=site.name)),
        Crumb(
            str(app_config.verbose_name),
            reverse("admin:app_list", args=[opts.app_label], current_app=site.name),
        ),
        Crumb(
            str(capfirst(opts.verbose_name_plural)),
            reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist", current_app=site.name)
            if model_admin.has_view_or_change_permission(request)
            else "",
        ),
    ]


def find_address(site: AdminSite, request: HttpRequest, obj: Model, **choice: object) -> str | None:
    """
    Return the address of the statistics of an object, or else that of its form.

    Returns None if the user may not view the object there. ``choice`` is what the statistics are
    to show, see statistics.read_choice().
    """
    model = obj._meta.model
    if not site.is_registered(model):
        return None
    if not site.get_model_admin(model).has_view_or_change_permission(request, obj):
        return None
    try:
        address, query = object_url(site, model, obj, "hit_statistics"), urlencode(choice)
    except NoReverseMatch:  # Only a HitCountAdmin has statistics.
        with suppress(NoReverseMatch):
            return object_url(site, model, obj, "change")
        return None
    return f"{address}?{query}" if query else address


def object_url(site: AdminSite, model: type[Model], obj: Model, view: str) -> str:
    """Return the address of a view of an object of ``model``. Raises NoReverseMatch."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}"
    return reverse(name, args=[quote(obj.pk)], current_app=site.name)


def page_context(site: AdminSite, request: HttpRequest, *, crumbs: list[Crumb]) -> dict[str, Any]:
    """Return what the templates of all our pages need."""
    return {
        **site.each_context(request),
        "crumbs": crumbs,
        "has_list_of_crumbs": HAS_LIST_OF_CRUMBS,
    }


def csv_file(name: str, pieces: Iterable[str]) -> StreamingHttpResponse:
    """Return a table as a file to download, which is read while it is sent."""
    return StreamingHttpResponse(
        pieces,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
