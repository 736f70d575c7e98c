"""The report of all hits, in the admin's index."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hitcount.admin.pages import ReadOnlyAdmin, csv_file, find_address, page_context
from django_hitcount.admin.report_contents import (
    FILES,
    find_days_with_hits,
    find_models,
    read_file,
    read_report,
    shows_visitors,
)
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import time_since
from django_hitcount.reports.labels import counter_choices
from django_hitcount.reports.rows import ObjectRow, file_name
from django_hitcount.reports.selection import Selection, read_selection
from django_hitcount.status import get_flush_status

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
        selection = read_selection(request.GET.dict(), find_models())
        table = request.GET.get("csv", "")
        if table in FILES:
            return csv_file(_file_name(table, selection), read_file(table, selection))
        report = read_report(selection)
        status = get_flush_status() if get_buffer().keeps_hits else None
        waiting_since = status and status.oldest_pending_at
        context = {
            **page_context(self, request, selection),
            "title": _("Hits"),
            "report": report,
            "chart": report.chart,
            "days_with_hits": find_days_with_hits(selection) if report.is_empty else None,
            "counters": counter_choices(),
            "top": self._link(request, report.top, selection),
            "rising": self._link(request, report.rising, selection),
            "falling": self._link(request, report.falling, selection),
            "shows_visitors": shows_visitors(selection),
            "buffer": status,
            "hits_are_late": bool(waiting_since and time_since(waiting_since) > LATE_AFTER),
            "time_zone": timezone.get_default_timezone_name(),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/django_hitcount/report.html", context)

    def _link(
        self, request: HttpRequest, rows: Sequence[ObjectRow], selection: Selection
    ) -> list[tuple[ObjectRow, str | None]]:
        """Return rows, each with the address of its object; None if the user may not view it."""
        period = selection.period  # By its days: a name would stand for others there.
        choice = {"counter": selection.counter, "first": period.first_day, "last": period.last_day}
        find = partial(find_address, self.admin_site, request, choice=choice)
        return [(row, find(row.obj) if row.obj else None) for row in rows]


def _file_name(table: str, selection: Selection) -> str:
    """Return the name of a file: the table, the counter and model if chosen, and the days."""
    chosen = selection.parameters
    model = chosen.get("model", "").replace(".", "-")
    return file_name(selection.period, table, chosen.get("counter", ""), model)
