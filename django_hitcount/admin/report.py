"""The report of all hits, in the admin's index: its page and its files, and what they read."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Model, OuterRef, Subquery, Sum
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hitcount.admin.pages import ReadOnlyAdmin, csv_file, find_address, page_context
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of, time_since
from django_hitcount.counters.keys import CounterKey, CounterRange, ObjectKey
from django_hitcount.counters.rankings import Order, RankedKey, weigh_days
from django_hitcount.db.ranking_scopes import Scope
from django_hitcount.db.rankings import compare_objects, stream_objects
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DailyModelHits, HitSlot, RefusedHitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.refusals.registry import reasons_by_name
from django_hitcount.reports import MOST_MODELS, counter_choices, label_object, load_objects
from django_hitcount.reports.rows import (
    Days,
    ObjectRow,
    RefusedRow,
    Report,
    days_csv,
    file_name,
    objects_csv,
    pick_days,
    refused_csv,
    refused_rows,
    share_of,
)
from django_hitcount.reports.selection import (
    CountedModel,
    Period,
    Selection,
    period_up_to,
    read_selection,
)
from django_hitcount.series import hits_by_day
from django_hitcount.status import get_flush_status
from django_hitcount.unique_visitors import get_visitors_of_ranges

LATE_AFTER = datetime.timedelta(minutes=15)
"""How long hits may wait for a flush before the report says so. Flushes may be minutes apart."""

ROWS = 10
"""Objects of a ranking on the page."""

ROWS_AT_A_TIME = 1000
"""Rows of a file whose objects are loaded together."""

MOST_ROWS_WITH_VISITORS = 1000
VISITORS_AT_A_TIME = 100
"""Rows of a file whose visitors are read, and of how many together: a day may have 12 KB."""

FILES = ("days", "top", "rising", "falling", "refused")
"""The tables that can be downloaded, by the name in an address."""


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
            chosen = selection.parameters
            parts = [table, chosen.get("counter", ""), chosen.get("model", "")]
            return csv_file(file_name(selection.period, *parts), read_file(table, selection))
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


def find_models() -> list[CountedModel]:
    """Return the models of which there is a row of hits, by name. Costs a query."""
    # Not EXISTS: MariaDB would read a whole index for it. In the order of an index, because
    # PostgreSQL would read all rows for each content type without hits.
    rows = HitSlot.objects.filter(content_type=OuterRef("pk")).order_by(*HitSlot.KEY, "slot")
    one = rows.values("content_type")[:1]
    using = hits_alias()
    with savepoint(using):
        all_types = ContentType.objects.using(using).alias(row=Subquery(one))
        types = [*all_types.filter(row__isnull=False)]
    found = [
        CountedModel(content_type_id=of.pk, model=model)
        for of in types
        if (model := of.model_class())  # None of one that the site does not have any more.
    ]
    return sorted(found, key=lambda counted: (counted.name, counted.label))


def find_days_with_hits(selection: Selection) -> Period | None:
    """
    Return days up to the newest one that is over and has hits that are compacted; None without one.

    Costs a query.
    """
    using = hits_alias()
    rows = DailyModelHits.objects.using(using).filter(
        content_type_id__in=[counted.content_type_id for counted in selection.chosen_models],
        counter=selection.counter,
        day__lt=day_of(),
        hits__gt=0,
    )
    with savepoint(using):
        newest: datetime.date | None = rows.aggregate(newest=Max("day"))["newest"]
    return period_up_to(newest) if newest else None


def read_refused(selection: Selection) -> list[RefusedRow]:
    """Return the refused hits of the counter in the period by reason. Costs a query."""
    using = hits_alias()
    refused = RefusedHitSlot.objects.using(using).filter(
        day__range=selection.period.ends, counter=selection.counter
    )
    with savepoint(using):
        sums = dict(refused.values_list("refusal").annotate(sum=Sum("hits")))
    return refused_rows({name: int(hits) for name, hits in sums.items()}, reasons_by_name())


def read_report(selection: Selection) -> Report:
    """
    Read all numbers of a report.

    Costs up to eight queries, whatever the number of models, objects and hits: one for the hits by
    day, one for the refused ones, one or two for the rankings, one for the visitors if they are
    counted, and one for the objects of each of up to three models.
    """
    days, period = _read_days(selection), selection.period
    hits = pick_days(days, period)
    rankings = compare_objects(_scope(selection), ROWS)
    first = {order: ranking.first(ROWS) for order, ranking in rankings.items()}
    keys = {ranked.object_key for rows in first.values() for ranked in rows}
    objects = load_objects(keys, selection.models, most_models=MOST_MODELS)
    total = sum(hits.values())
    rows = {order: _describe(ranked, objects, selection, total) for order, ranked in first.items()}
    return Report(
        selection=selection,
        hits=hits,
        before=pick_days(days, period.before),
        today=None if period.is_today else days.get(period.today),
        top=_add_visitors(rows[Order.TOP], selection),
        rising=rows[Order.RISING],
        falling=rows[Order.FALLING],
        is_certain=all(ranking.proves(ROWS) for ranking in rankings.values()),
        refused=read_refused(selection),
    )


def read_file(name: str, selection: Selection) -> Iterator[str]:
    """
    Read one of FILES, with all rows of its table, piece by piece.

    Costs a query for each thousand objects of a model.
    """
    if name == "refused":
        return refused_csv(read_refused(selection))
    if name in ("rising", "falling"):
        return objects_csv(_stream(Order[name.upper()], selection), has_shares=False)
    days, period = _read_days(selection), selection.period
    hits = pick_days(days, period)
    if name == "days":
        return days_csv(hits, pick_days(days, period.before))
    rows = _stream(Order.TOP, selection, sum(hits.values()))
    return objects_csv(_stream_visitors(rows, selection), has_shares=True)


def _read_days(selection: Selection) -> Days:
    """Return the hits by day of both periods, and of today. Costs one query."""
    model = selection.model.model if selection.model else None
    first_day, last_day = selection.period.read_days
    return hits_by_day(model, first_day=first_day, last_day=last_day, counter=selection.counter)


def _scope(selection: Selection) -> Scope:
    """Return what is ranked."""
    before = selection.period.before
    return Scope(
        content_type_ids=[counted.content_type_id for counted in selection.chosen_models],
        counter=selection.counter,
        weights=weigh_days(selection.period.list_days()),
        before=before.list_days() if before else (),
    )


def _stream(order: Order, selection: Selection, total: int = 0) -> Iterator[ObjectRow]:
    """Yield all rows of a ranking. See _describe() for ``total``."""
    ranked = stream_objects(_scope(selection), order)
    while some := [*islice(ranked, ROWS_AT_A_TIME)]:
        objects = load_objects({row.object_key for row in some}, selection.models)
        yield from _describe(some, objects, selection, total)


def _describe(
    ranked: Iterable[RankedKey],
    objects: Mapping[ObjectKey, Model],
    selection: Selection,
    total: int,
) -> list[ObjectRow]:
    """Return the rows of objects. Their shares are those of ``total``, unless it is 0."""
    names = {of.content_type_id: of.model._meta.verbose_name for of in selection.models}
    is_compared = selection.period.before is not None
    return [
        ObjectRow(
            key=key,
            name=label_object(objects[key]) if key in objects else key[1],
            obj=objects.get(key),
            model_name=str(names[key[0]]),
            hits=hits,
            before=before if is_compared else None,
            share=share_of(hits, total),
        )
        for key, hits, before in ranked
    ]


def _stream_visitors(rows: Iterator[ObjectRow], selection: Selection) -> Iterator[ObjectRow]:
    """Add the visitors of the first rows."""
    for _batch in range(MOST_ROWS_WITH_VISITORS // VISITORS_AT_A_TIME):
        yield from _add_visitors(islice(rows, VISITORS_AT_A_TIME), selection)
    yield from rows


def _add_visitors(rows: Iterable[ObjectRow], selection: Selection) -> list[ObjectRow]:
    """Add the visitors of the period, if the report shows them, and if they can be read now."""
    found = [*rows]
    if not (found and selection.shows_visitors):
        return found
    days = selection.period.ends
    ranges = [CounterRange(CounterKey(*row.key, selection.counter), *days) for row in found]
    try:
        visitors = get_visitors_of_ranges(ranges)
    except BufferUnavailable:
        return found
    # 0 is none: there are hits, so nobody counted their visitors.
    return [
        replace(row, visitors=int(visitors[wanted]) or None)
        for row, wanted in zip(found, ranges, strict=True)
    ]
