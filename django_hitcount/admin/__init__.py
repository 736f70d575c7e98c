"""
The admin: reports of hits, and what a ModelAdmin inherits to show those of its objects.

Of the tables, it shows the corrections, and the report in place of the slots. The others are for
flushing, compacting and forgetting: nobody can read anything in their rows that the reports do not
say.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminForm
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.core.checks import CheckMessage, Error
from django.core.exceptions import PermissionDenied
from django.db import models, router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from django_hitcount import conf
from django_hitcount.admin.columns import HitsColumn, fill_cells
from django_hitcount.admin.corrections import CorrectionAdmin, CorrectionForm, describe
from django_hitcount.admin.pages import (
    ReadOnlyAdmin,
    SelectionForm,
    csv_file,
    object_url,
    page_context,
)
from django_hitcount.admin.report import HitReportAdmin
from django_hitcount.admin.statistics import compare, days_csv, read_statistics
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.keys import check_counter
from django_hitcount.counters.primary_keys import KeyType, key_type
from django_hitcount.db.tables import Correction, HitSlot, hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.models import Counter
from django_hitcount.prefetching import prefetch_hits
from django_hitcount.reports import label_object
from django_hitcount.reports.rows import file_name

__all__ = ["CorrectionAdmin", "CounterAdmin", "HitCountAdmin", "HitReportAdmin"]

logger = logging.getLogger("django_hitcount")

ModelT = TypeVar("ModelT", bound=models.Model)

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
else:  # A mixin: the ModelAdmin of the project, of any class, comes after it.

    class ModelAdmin:
        def __class_getitem__(cls, model):
            return cls


COLUMNS_OF_THE_PROJECT = frozenset({"hits", "hit_count"})
"""
Names in ``list_display`` that show the hits already, so that no other column is added.

Before they read ``obj.hits``, it is read for all objects of the page.
"""

STYLE_SHEETS = ["django_hitcount/charts.css", "django_hitcount/objects.css"]


def _names_of(columns: Iterable[Any]) -> set[str]:
    return {getattr(column, "__name__", column) for column in columns}


class HitCountAdmin(ModelAdmin[ModelT]):
    """
    Shows the hits of objects in the admin.

    Put it before the class of your ModelAdmin::

        @admin.register(Article)
        class ArticleAdmin(HitCountAdmin, admin.ModelAdmin): ...

    The list has one more column after those of ``list_display``, headed "Hits" or with the name of
    the counter: the exact total of each object, and a line of its last 30 days. Each object has a
    page of statistics, with a link on its form, at ``.../<pk>/statistics/``. Users who may view the
    object see both. Those with the permission ``django_hitcount.add_correction`` may also add hits
    there, or take some back.

    A list costs what get_hits() costs, and a query, for any number of objects.
    """

    hit_counter: str = DEFAULT_COUNTER
    """The counter that the column shows, and that the page of statistics begins with."""

    @property
    def hits_column(self) -> HitsColumn:
        """Name it in ``list_display`` to choose its place. Otherwise it comes last."""
        return HitsColumn(self.model, self.hit_counter)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Report a counter that is not declared, and a model whose objects cannot be counted."""
        found = super().check(**kwargs)
        if conf.find_setting_errors():
            return found  # Reported as E001.
        try:
            check_counter(self.hit_counter)
            key_type(self.model)
        except InvalidArgument as exc:
            found.append(Error(str(exc), obj=type(self), id="django_hitcount.E009"))
        return found

    @property
    def media(self) -> forms.Media:
        """The media of the ModelAdmin, and our style sheets."""
        return super().media + forms.Media(css={"all": STYLE_SHEETS})

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Add the column, unless the list shows the hits already."""
        columns = [*super().get_list_display(request)]
        shows_hits = _names_of(columns) & {"hits_column", *COLUMNS_OF_THE_PROJECT}
        return columns if shows_hits else [*columns, "hits_column"]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Read the hits of all objects of the page, before its template shows them one by one."""
        response = super().changelist_view(request, extra_context)
        changelist = (getattr(response, "context_data", None) or {}).get("cl")
        if not changelist:  # An action, or what list_editable saves, shows no list.
            return response
        objs, names = [*changelist.result_list], _names_of(changelist.list_display)
        if names & COLUMNS_OF_THE_PROJECT:
            prefetch_hits(objs)
        if "hits_column" in names:
            has_own_link = "hits_column" in (changelist.list_display_links or ())
            linked = [] if has_own_link or changelist.is_popup else objs
            urls = {
                obj: self._statistics_url(obj)
                for obj in linked
                if self.has_view_or_change_permission(request, obj)
            }
            fill_cells(objs, counter=self.hit_counter, urls=urls)
        return response

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the statistics of an object."""
        view = self.admin_site.admin_view(self.hit_statistics_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_hit_statistics"
        return [path("<path:object_id>/statistics/", view, name=name), *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """
        Add a link to the statistics, beside that to the history.

        Our template extends the one that the ModelAdmin has chosen, whichever that is. If it has no
        block ``object-tools-items``, the link is left out.
        """
        response = super().render_change_form(request, context, *args, **kwargs)
        obj = context.get("original")
        if obj is not None and isinstance(response, TemplateResponse):
            chosen = response.resolve_template(response.template_name)
            response.template_name = "admin/django_hitcount/form_with_statistics.html"
            response.context_data = {
                **(response.context_data or {}),
                "hitcount_change_form": chosen,
                "hit_statistics_url": self._statistics_url(obj),
            }
        return response

    def objects_before(self, request: HttpRequest, obj: ModelT) -> models.QuerySet[ModelT]:
        """
        Return the objects before this one, the nearest first: its statistics are compared with
        those of the nearest that has hits.

        These are the objects with smaller primary keys, and none if keys are no numbers. Override
        this for another order, such as that of their days of publication.
        """
        objs = self.get_queryset(request)
        if key_type(self.model) is not KeyType.INTEGER:
            return objs.none()
        return objs.filter(pk__lt=obj.pk).order_by("-pk")

    def hit_statistics_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """The page of statistics of an object, and the form that corrects its hits."""
        obj = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        if obj is None:
            # As for the form and the history of an object that does not exist.
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined,no-any-return]
                request, self.opts, object_id
            )
        # Today is among the days, since they are not compared with those before: an object of today
        # has no others.
        parameters = {"counter": self.hit_counter, **request.GET.dict()}
        choice = SelectionForm(parameters, files=["days"], with_today=True)
        selection = choice.selection
        is_posted = request.method == "POST"
        form = None
        if request.user.has_perm("django_hitcount.add_correction"):
            data, initial = request.POST if is_posted else None, {"counter": selection.counter}
            form = CorrectionForm(data, initial=initial)
        if is_posted:
            if form is None:
                raise PermissionDenied
            then = partial(self._log_correction, request, obj)
            if correction := form.save(obj, request.user.get_username(), then=then):
                self.message_user(request, describe(correction), messages.SUCCESS)
                return HttpResponseRedirect(request.get_full_path())
        elif choice.cleaned_data.get("csv"):
            parts = ["days", self.model._meta.label_lower, str(obj.pk), selection.counter]
            return csv_file(file_name(selection.period, *parts), days_csv(obj, selection))
        return self._show_statistics(request, obj, choice, form)

    def _log_correction(self, request: HttpRequest, obj: ModelT, correction: Correction) -> None:
        """
        Add the correction to the history, in the transaction of the correction.

        If the history is in another database, do so after the COMMIT. Then an error must not fail
        the page: who sees it would correct the hits again.
        """
        using, text = router.db_for_write(LogEntry), describe(correction)
        is_together = using == hits_alias()

        def add() -> None:
            try:
                with transaction.atomic(using=using):
                    self.log_change(request, obj, text)
            except Exception as exc:  # The history has the text of the object.
                if is_together and isinstance(exc, DATABASE_ERRORS):
                    raise
                logger.exception("The history of %s %s lacks a correction", self.opts.label, obj.pk)

        if is_together:
            add()
        else:
            transaction.on_commit(add, using=hits_alias())

    def _show_statistics(
        self, request: HttpRequest, obj: ModelT, choice: SelectionForm, form: CorrectionForm | None
    ) -> TemplateResponse:
        beside, counter = request.GET.get("beside"), choice.selection.counter
        more = {"counter": counter} if beside is None else {"counter": counter, "beside": beside}
        label = label_object(obj)
        fieldsets: Any = [(None, {"fields": [*form.fields]})] if form else []
        context = {
            **page_context(self, request, choice, **more),
            "title": _("Statistics: %s") % label,
            "label": label,
            "original": obj,
            "statistics": read_statistics(obj, choice.selection),
            **compare(self, request, obj, counter),
            "form": form,
            "admin_form": AdminForm(form, fieldsets, {}, model_admin=self),  # type: ignore[arg-type]
            "media": self.media,
        }
        app, model = self.opts.app_label, self.opts.model_name
        names = [f"{app}/{model}/", f"{app}/", "django_hitcount/"]
        return TemplateResponse(
            request, [f"admin/{name}hit_statistics.html" for name in names], context
        )

    def _statistics_url(self, obj: models.Model) -> str:
        return object_url(self.admin_site, self.model, obj, "hit_statistics")


class CounterAdmin(HitCountAdmin[Counter], ReadOnlyAdmin):
    """The named counters, with the statistics of each. Deleting one deletes its hits."""

    list_display = ("name",)
    search_fields = ("name",)


admin.site.register(HitSlot, HitReportAdmin)
admin.site.register(Counter, CounterAdmin)
admin.site.register(Correction, CorrectionAdmin)
