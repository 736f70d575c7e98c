"""The report of all hits, in the admin's index."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_hitcount.admin.pages import (
    Crumb,
    ReadOnlyAdmin,
    crumbs_of_model,
    csv_file,
    find_address,
    page_context,
)
from django_hitcount.admin.report_contents import (
    FILES,
    Overview,
    find_day_with_hits,
    read_file,
    read_overview,
    read_report,
    shows_visitors,
)
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import time_since
from django_hitcount.db.routing import hits_alias
from django_hitcount.reports.labels import counter_choices
from django_hitcount.reports.rows import ObjectRow, Report, file_name
from django_hitcount.reports.selection import (
    PERIODS,
    TODAY,
    Period,
    Selection,
    named_period,
    period_up_to,
    read_selection,
    select_model,
)
from django_hitcount.status import read_status

LATE_AFTER = datetime.timedelta(minutes=15)
"""How long hits may wait for a flush before the report says so. Flushes may be minutes apart."""


class HitReportAdmin(ReadOnlyAdmin):
    """
    The report, in place of a list of slots. It needs the permission to view it.

    Register it with an AdminSite of your own: ``site.register(HitSlot, HitReportAdmin)``.
    """

    def get_urls(self) -> list[URLPattern]:
        """Return the address of the report alone: a slot has no page."""
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name="django_hitcount_hitslot_changelist")]

    def changelist_view(  # type: ignore[override]  # A file is streamed.
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """Show the report, or return one of its tables as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        selection = read_selection(request.GET.dict())
        overview = read_overview(selection.period, counter=selection.counter, using=hits_alias())
        selection = select_model(selection, request.GET.get("model", ""), overview.models)
        table = request.GET.get("csv", "")
        if table in FILES:
            return csv_file(_file_name(table, selection), read_file(table, selection, overview))
        report = read_report(selection, overview)
        request.current_app = self.admin_site.name
        *others, last = crumbs_of_model(self, request)
        context = {
            **page_context(self.admin_site, request, crumbs=[*others, Crumb(last.label)]),
            **self._context(request, report, overview),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/django_hitcount/report.html", context)

    def _context(
        self, request: HttpRequest, report: Report, overview: Overview
    ) -> dict[str, object]:
        selection = report.selection
        hits_wait = get_buffer().keeps_hits
        status = read_status(overview.last_flush_at) if hits_wait else None
        waiting_since = status and status.oldest_pending_at
        return {
            "title": _("Hits"),
            "opts": self.opts,
            "report": report,
            "selection": selection,
            **selection_context(request, selection),
            "chart": report.chart,
            "address": urlencode(selection.parameters),
            "days_with_hits": link_days_with_hits(report, overview) if report.is_empty else None,
            "counters": counter_choices(),
            "models": overview.models,
            "top": self._link(request, report.top, selection),
            "rising": self._link(request, report.rising, selection),
            "falling": self._link(request, report.falling, selection),
            "shows_visitors": shows_visitors(selection),
            "buffer": status,
            "hits_wait": hits_wait,
            "hits_are_late": bool(waiting_since and time_since(waiting_since) > LATE_AFTER),
            "time_zone": timezone.get_default_timezone_name(),
        }

    def _link(
        self, request: HttpRequest, rows: Sequence[ObjectRow], selection: Selection
    ) -> list[tuple[ObjectRow, str]]:
        """Return rows, each with the address of its object; empty if the user may not view it."""
        period = selection.period  # By its days: a name would stand for others there.
        choice = {"counter": selection.counter, "first": period.first_day, "last": period.last_day}
        find = partial(find_address, self.admin_site, request)
        return [(row, (row.obj and find(row.obj, **choice)) or "") for row in rows]


class PeriodLink(NamedTuple):
    """A link to the same report of other days."""

    label: str
    address: str
    is_current: bool


def _file_name(table: str, selection: Selection) -> str:
    """Return the name of a file: the table, the counter and model if chosen, and the days."""
    chosen = selection.parameters
    model = chosen.get("model", "").replace(".", "-")
    return file_name(selection.period, table, chosen.get("counter", ""), model)


def selection_context(request: HttpRequest, selection: Selection) -> dict[str, object]:
    """Return what the templates show of the address: the form, its problems and other periods."""
    table = request.GET.get("csv")  # If it named a table, no page would be shown.
    unknown = [_("There is no table “%(table)s”.") % {"table": table}] if table else []
    return {
        "problems": [*selection.problems, *unknown],
        "periods": [
            link_period(selection, named_period(name), str(label))
            for name, label in PERIODS.items()
        ],
        "typed": {**request.GET.dict(), **selection.period.parameters},
        "days_address": "?" + urlencode({**selection.parameters, "csv": "days"}),
    }


def link_period(selection: Selection, period: Period, label: str) -> PeriodLink:
    """Return a link to the same report of other days."""
    return PeriodLink(
        label=label,
        address=urlencode(replace(selection, period=period).parameters),
        is_current=bool(period.name) and selection.period.name == period.name,
    )


def link_days_with_hits(report: Report, overview: Overview) -> PeriodLink | None:
    """Return a link to days of which there are hits; None if there are none, or none yet."""
    selection = report.selection
    models = [selection.model] if selection.model else overview.models
    day = find_day_with_hits(models, counter=selection.counter, using=hits_alias())
    period = period_up_to(day) if day else None
    if period:
        last_day = date_format(period.last_day)
        label = _("Show the days up to %(day)s, which have hits.") % {"day": last_day}
        return link_period(selection, period, label)
    if not report.today:
        return None
    label = ngettext(
        "Show today, which has %(hits)s hit so far.",
        "Show today, which has %(hits)s hits so far.",
        report.today,
    )
    hits = number_format(report.today, force_grouping=True)
    return link_period(selection, named_period(TODAY), label % {"hits": hits})
