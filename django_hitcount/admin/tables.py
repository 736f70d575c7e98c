"""The tables that the admin shows: corrections, which nobody changes afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import models, router
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hitcount.admin.pages import find_address
from django_hitcount.admin.read_only import ReadOnlyAdmin
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db.tables import Correction
from django_hitcount.exceptions import InvalidKey
from django_hitcount.reports.labels import counter_choices, label_counter, label_key, label_object
from django_hitcount.templatetags.hitcount_charts import signed

_ON_STATE = "hitcount_object"
"""
The attribute of ``correction._state`` that has the label of the corrected object, and its address.

The column that shows them knows no request, so it cannot ask whether the user may view the object.
"""

_COLUMNS = ("corrected_object", "counter_name", "day", "hits", "reason", "made_by", "made_at")


class CounterFilter(admin.SimpleListFilter):
    """Filters by the counters that are declared, if there are several."""

    title = _("counter")
    parameter_name = "counter"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        choices = counter_choices()
        return choices if len(choices) > 1 else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(counter=self.value()) if self.value() else queryset


class CorrectionAdmin(ReadOnlyAdmin):
    """
    Lists who added or took back hits, when and why.

    Corrections are made on the page of statistics of an object, and stay as they are.
    """

    list_display = [*_COLUMNS]
    list_display_links = None
    list_filter = [CounterFilter]
    list_select_related = ["content_type"]
    search_fields = ["reason", "made_by", "object_id"]
    date_hierarchy = "day"
    ordering = ["-made_at", "-pk"]
    fields = [*_COLUMNS]

    class Media:
        css = {"all": ["django_hitcount/objects.css"]}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Read the objects of all corrections of the page, with a query for each model."""
        context = {"title": gettext("Corrections"), **(extra_context or {})}
        response = super().changelist_view(request, context)
        changelist = (getattr(response, "context_data", None) or {}).get("cl")
        if changelist:
            self._load_objects(request, changelist.result_list)
        return response

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Correction | None:
        """Read the object of a correction that is shown alone."""
        correction: Correction | None = super().get_object(request, object_id, from_field)
        if correction:
            self._load_objects(request, [correction])
        return correction

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Refuse the year 99999999999 as other invalid days; Django fails for it."""
        try:
            return super().get_changelist_instance(request)
        except OverflowError as exc:
            raise IncorrectLookupParameters(str(exc)) from exc

    @admin.display(description=_("object"), ordering="object_id")
    def corrected_object(self, correction: Correction) -> str:
        """The corrected object, with a link if it is in the admin."""
        label, url = getattr(correction._state, _ON_STATE)
        return format_html('<a href="{}">{}</a>', url, label) if url else label

    def _load_objects(self, request: HttpRequest, corrections: Collection[Correction]) -> None:
        """Put what is shown of the object of each correction on it."""
        by_model: dict[type[models.Model] | None, list[Correction]] = defaultdict(list)
        for correction in corrections:
            by_model[correction.content_type.model_class()].append(correction)
        for model, group in by_model.items():
            found = _find_objects(model, {correction.object_id for correction in group})
            for correction in group:
                obj = found.get(correction.object_id)
                label = label_object(obj) if obj else _label_missing(correction)
                url = find_address(self.admin_site, request, obj) if obj else None
                setattr(correction._state, _ON_STATE, (label, url))

    @admin.display(description=_("counter"), ordering="counter")
    def counter_name(self, correction: Correction) -> str:
        return label_counter(correction.counter)

    @admin.display(description=_("hits"), ordering="amount")
    def hits(self, correction: Correction) -> str:
        return format_html('<bdi dir="ltr">{}</bdi>', signed(correction.amount))


def _label_missing(correction: Correction) -> str:
    model = correction.content_type.model_class()
    name = model._meta.verbose_name if model else correction.content_type.model
    return label_key(str(name), correction.object_id)


def _find_objects(
    model: type[models.Model] | None, object_ids: Collection[str]
) -> dict[str, models.Model]:
    if model is None:
        return {}
    try:
        objs = find_by_texts(model, object_ids, using=router.db_for_read(model))
    except InvalidKey:
        return {}  # The model has a primary key of another type now.
    return {convert_key(model, obj.pk): obj for obj in objs}
