"""What all our pages in the admin have: a choice of days, links to objects, and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import django
from django import forms
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_hitcount.reports.selection import PERIODS, Selection

HAS_LIST_OF_CRUMBS = django.VERSION >= (6, 1)
"""Whether the trail of links is an ordered list; before, it was a text with separators."""


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Lets nobody add, change or delete anything, whatever their permissions."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


class ComparisonForm(forms.Form):
    """Asks for the primary key of the object to compare with."""

    beside = forms.CharField(
        label=gettext_lazy("Compare with"),
        required=False,
        widget=forms.TextInput(attrs={"size": 12, "aria-describedby": "hitcount-beside-help"}),
    )


def page_context(
    model_admin: ModelAdmin[Any], request: HttpRequest, selection: Selection, **more: str
) -> dict[str, Any]:
    """
    Return what the templates of our pages need: the address is that of ``selection`` and ``more``.
    """
    request.current_app = model_admin.admin_site.name
    query = QueryDict(urlencode({**selection.parameters, **more}))
    table = request.GET.get("csv")  # If it named a table, no page would be shown.
    unknown = [_("There is no table “%(table)s”.") % {"table": table}] if table else []
    return {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "has_list_of_crumbs": HAS_LIST_OF_CRUMBS,
        "may_view_list": model_admin.has_view_or_change_permission(request),
        "selection": selection,
        "query": query,
        "problems": [*selection.problems, *unknown],
        "periods": PERIODS.items(),
        "typed": {**request.GET.dict(), **selection.period.parameters},
    }


def find_address(
    site: AdminSite, request: HttpRequest, obj: Model, *, choice: Mapping[str, object] | None = None
) -> str | None:
    """
    Return the address of the statistics of an object, or else that of its form.

    Returns None if the user may not view the object there. ``choice`` is what the statistics are
    to show, see read_selection().
    """
    model = obj._meta.model
    if not site.is_registered(model):
        return None
    if not site.get_model_admin(model).has_view_or_change_permission(request, obj):
        return None
    # Only a HitCountAdmin has statistics.
    for view, parameters in (("hit_statistics", choice), ("change", None)):
        with suppress(NoReverseMatch):
            query = f"?{urlencode(parameters)}" if parameters else ""
            return object_url(site, model, obj, view) + query
    return None


def object_url(site: AdminSite, model: type[Model], obj: Model, view: str) -> str:
    """Return the address of a view of an object of ``model``. Raises NoReverseMatch."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}"
    return reverse(name, args=[quote(obj.pk)], current_app=site.name)


def csv_file(name: str, pieces: Iterable[str]) -> StreamingHttpResponse:
    """Return a table as a file to download, which is read while it is sent."""
    return StreamingHttpResponse(
        pieces,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
