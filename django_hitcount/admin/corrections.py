"""
The form that adds hits to an object, or takes some back, and the list of these corrections.

Nobody changes a correction afterwards.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.widgets import AdminIntegerFieldWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, ngettext

from django_hitcount import conf
from django_hitcount.admin.pages import DAY_INPUT, NOT_IN_FUTURE, ListAdmin, find_address
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import AMOUNT_LIMIT
from django_hitcount.counters.keys import is_storable
from django_hitcount.db.tables import Correction
from django_hitcount.exceptions import TooFewHits
from django_hitcount.reports import (
    counter_choices,
    label_counter,
    label_key,
    label_object,
    load_objects,
)
from django_hitcount.templatetags.hitcount_reports import grouped, signed


class CorrectionForm(forms.Form):
    """Asks for the arguments of correct_hits()."""

    counter = forms.ChoiceField(label=gettext_lazy("Counter"), choices=counter_choices)
    day = forms.DateField(
        label=gettext_lazy("Day"),
        widget=DAY_INPUT,
        initial=day_of,
        validators=[NOT_IN_FUTURE],
    )
    amount = forms.IntegerField(
        label=gettext_lazy("Hits"),
        min_value=-AMOUNT_LIMIT,
        max_value=AMOUNT_LIMIT,
        widget=AdminIntegerFieldWidget,
        help_text=gettext_lazy("How many hits to add. To take hits back, enter a negative number."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=conf.REASON_MAX_LENGTH,
        widget=AdminTextInputWidget,
        help_text=gettext_lazy("It is shown here and in the history, with your name."),
    )

    def clean_amount(self) -> int:
        amount: int = self.cleaned_data["amount"]
        if amount == 0:
            raise ValidationError(gettext("Enter a number other than 0."))
        return amount

    def save(
        self, obj: Model, user: str, *, then: Callable[[Correction], object]
    ) -> Correction | None:
        """Correct the hits. If that is not possible, add the reason to a field; return None."""
        if not self.is_valid():
            return None
        arguments = {**self.cleaned_data}
        try:
            return correct_hits(obj, arguments.pop("amount"), user=user, then=then, **arguments)
        except TooFewHits as exc:
            self.add_error("amount", _too_few_hits(exc.counted, arguments["day"]))
            return None


def _too_few_hits(counted: int, day: datetime.date) -> str:
    text = ngettext(
        "Only %(hits)s hit was counted on %(day)s.",
        "Only %(hits)s hits were counted on %(day)s.",
        counted,
    )
    return text % {"hits": grouped(counted), "day": date_format(day)}


def describe(correction: Correction) -> str:
    """Say what a correction did, for the history and for the user who made it."""
    return gettext("Corrected %(counter)s of %(day)s by %(hits)s: %(reason)s") % {
        "counter": label_counter(correction.counter),
        "day": date_format(correction.day),
        "hits": signed(correction.amount),
        "reason": correction.reason,
    }


_ON_STATE = "hitcount_object"
"""
The attribute of ``correction._state`` that has the label of the corrected object, and its address.

The column that shows them knows no request, so it cannot ask whether the user may view the object.
"""


class CounterFilter(admin.SimpleListFilter):
    """Filters by the counters that are declared, if there are several."""

    title = gettext_lazy("counter")
    parameter_name = "counter"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        choices = counter_choices()
        return choices if len(choices) > 1 else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(counter=self.value()) if self.value() else queryset


class CorrectionAdmin(ListAdmin):
    """
    Lists who added or took back hits, when and why.

    Corrections are made on the page of statistics of an object, and stay as they are.
    """

    list_display = [
        *("corrected_object", "counter_name", "day", "hits", "reason", "made_by", "made_at")
    ]
    list_display_links = None
    list_filter = [CounterFilter]
    list_select_related = ["content_type"]
    search_fields = ["reason", "made_by", "object_id"]
    date_hierarchy = "day"
    ordering = ["-made_at", "-pk"]

    class Media:
        css = {"all": ["django_hitcount/objects.css"]}

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the objects of all corrections of the page, with a query for each model."""
        if not all(is_storable(str(value)) for value in request.GET.values()):
            raise IncorrectLookupParameters  # PostgreSQL would raise an error.
        try:
            changelist = super().get_changelist_instance(request)
        except (OverflowError, ValueError) as exc:  # Of the years 9999 and 99999999999.
            raise IncorrectLookupParameters(str(exc)) from exc
        changelist.title = gettext("Corrections")
        self._load_objects(request, changelist.result_list)
        return changelist

    @admin.display(description=gettext_lazy("object"), ordering="object_id")
    def corrected_object(self, correction: Correction) -> str:
        """The corrected object, with a link if it is in the admin."""
        label, url = getattr(correction._state, _ON_STATE)
        return format_html('<a href="{}">{}</a>', url, label) if url else label

    def _load_objects(self, request: HttpRequest, corrections: Collection[Correction]) -> None:
        """Put what is shown of the object of each correction on it."""
        keys = {each: (each.content_type_id, each.object_id) for each in corrections}
        models = {each.content_type_id: each.content_type.model_class() for each in corrections}
        objects = load_objects({*keys.values()}, models)
        for correction, key in keys.items():
            obj = objects.get(key)
            name = correction.content_type.name
            label = label_object(obj) if obj else label_key(name, correction.object_id)
            url = find_address(self.admin_site, request, obj) if obj else None
            setattr(correction._state, _ON_STATE, (label, url))

    @admin.display(description=gettext_lazy("counter"), ordering="counter")
    def counter_name(self, correction: Correction) -> str:
        return label_counter(correction.counter)

    @admin.display(description=gettext_lazy("hits"), ordering="amount")
    def hits(self, correction: Correction) -> str:
        return format_html('<bdi dir="ltr">{}</bdi>', signed(correction.amount))
