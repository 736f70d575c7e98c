"""What all our pages in the admin have: a choice of days, links to objects, and files."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import django
from django import forms
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Model
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of
from django_hitcount.reports import counter_choices, leave_out_overviews, model_choices
from django_hitcount.reports.selection import (
    DEFAULT_PERIOD,
    LONGEST_PERIOD_DAYS,
    ONE_DAY,
    PERIODS,
    Models,
    Period,
    Selection,
    named_period,
)

HAS_LIST_OF_CRUMBS = django.VERSION >= (6, 1)
"""Whether the trail of links is an ordered list; before, it was a text with separators."""


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[type-arg]
    """
    Lets nobody add or change anything, whatever their permissions, nor delete it, unless the model
    has such a permission.
    """

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_add_permission

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        may_be_deleted = "delete" in self.opts.default_permissions
        return may_be_deleted and super().has_delete_permission(request, obj)


class ListAdmin(ReadOnlyAdmin):
    """Has one page, for all rows. They have none of their own."""

    def get_urls(self) -> list[URLPattern]:
        """Return the address of the list alone."""
        view = self.admin_site.admin_view(self.changelist_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_changelist"
        return [path("", view, name=name)]


DAY_INPUT = forms.DateInput({"type": "date"}, format="%Y-%m-%d")

NOT_IN_FUTURE = MaxValueValidator(day_of, gettext_lazy("This day is in the future."))

EARLIEST_DAY = datetime.date(1900, 1, 1)
"""Long before any hit, and late enough that other days come before it."""


class SelectionForm(forms.Form):
    """
    The parameters of an address: days, a counter, a model, and the file that is wanted, if any.

    Errors do not fail the page: it names them, and shows the default in place of what is invalid.
    """

    period = forms.ChoiceField(label=gettext_lazy("Period"), choices=PERIODS, required=False)
    first = forms.DateField(
        label=gettext_lazy("From"),
        required=False,
        widget=DAY_INPUT,
        validators=[NOT_IN_FUTURE, MinValueValidator(EARLIEST_DAY)],
    )
    last = forms.DateField(label=gettext_lazy("To"), required=False, widget=DAY_INPUT)
    counter = forms.ChoiceField(
        label=gettext_lazy("Counter"), choices=counter_choices, required=False
    )
    model = forms.ChoiceField(label=gettext_lazy("Model"), required=False)
    csv = forms.ChoiceField(required=False)

    def __init__(
        self,
        parameters: Mapping[str, str],
        *,
        models: Models | None = None,
        files: Sequence[str],
        with_today: bool = False,
    ) -> None:
        """
        ``models`` can be chosen, and ``files`` downloaded. For ``with_today``, see named_period().
        """
        super().__init__(parameters)
        self._models = models or {}
        self._with_today = with_today
        fields: dict[str, Any] = self.fields
        fields["model"].choices = [("", gettext("All models")), *model_choices(self._models)]
        fields["csv"].choices = [(name, name) for name in files]

    def clean_last(self) -> datetime.date | None:
        """
        Return the last day: yesterday by default, and at most. From today on, it is today.

        Returns None if no days are given, and the period has a name.
        """
        first: datetime.date | None = self.cleaned_data.get("first")
        last: datetime.date | None = self.cleaned_data["last"]
        if first is None:
            if last and "first" not in self.errors:
                raise ValidationError(gettext("Give the first day (From), too."))
            return None
        today = day_of()
        last = min(last or today, today)
        if first < today == last and not self._with_today:
            last = today - ONE_DAY
        if not 1 <= (last - first).days + 1 <= LONGEST_PERIOD_DAYS:
            most = number_format(LONGEST_PERIOD_DAYS, force_grouping=True)
            raise ValidationError(gettext("Choose 1 to %(most)s days.") % {"most": most})
        return last

    @cached_property
    def selection(self) -> Selection:
        """What is chosen. The fields then show that, unless what was typed is invalid."""
        self.full_clean()
        chosen = self.cleaned_data
        period = named_period(chosen.get("period") or DEFAULT_PERIOD, with_today=self._with_today)
        if chosen.get("first") and chosen.get("last"):
            period = Period(first_day=chosen["first"], last_day=chosen["last"], today=day_of())
        by_label = {model._meta.label_lower: model for model in self._models.values()}
        selection = Selection(
            period=period,
            counter=chosen.get("counter") or DEFAULT_COUNTER,
            models=self._models,
            model=by_label.get(chosen.get("model", "")),
        )
        self.data = {**self.data, **selection.parameters}
        return leave_out_overviews(selection)


class ComparisonForm(forms.Form):
    """Asks for the primary key of the object to compare with."""

    beside = forms.CharField(
        label=gettext_lazy("Compare with"),
        required=False,
        widget=forms.TextInput(attrs={"size": 12, "aria-describedby": "hitcount-beside-help"}),
    )


def page_context(
    model_admin: ModelAdmin[Any], request: HttpRequest, choice: SelectionForm, **more: str
) -> dict[str, Any]:
    """Return what templates of our pages need: the address is that of ``choice`` and ``more``."""
    request.current_app = model_admin.admin_site.name
    query = QueryDict(urlencode({**choice.selection.parameters, **more}))
    return {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "has_list_of_crumbs": HAS_LIST_OF_CRUMBS,
        "may_view_list": model_admin.has_view_or_change_permission(request),
        "choice": choice,
        "selection": choice.selection,
        "query": query,
        "periods": PERIODS.items(),
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
