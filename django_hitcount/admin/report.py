"""The report of all hits, in the admin's index: its page and its files, and what they read."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Max, Model, Sum
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from django_hitcount.admin.pages import (
    EARLIEST_DAY,
    ListAdmin,
    SelectionForm,
    csv_file,
    find_address,
    page_context,
)
from django_hitcount.buffers import get_buffer
from django_hitcount.counters import split
from django_hitcount.counters.days import day_of, days_until, time_since
from django_hitcount.counters.keys import CounterKey, ObjectKey
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.rankings import Order, RankedKey, Scope, weigh_days
from django_hitcount.db.rankings import compare_objects, stream_objects
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DailyModelHits, RefusedHitSlot, hits_alias
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.numbers import read_numbers
from django_hitcount.refusals.registry import reasons_by_name
from django_hitcount.reports import (
    MOST_MODELS,
    find_models,
    label_object,
    load_objects,
)
from django_hitcount.reports.rows import (
    Days,
    ObjectRow,
    RefusedRow,
    days_csv,
    file_name,
    objects_csv,
    pick_days,
    refused_csv,
    share_of,
    sum_up,
)
from django_hitcount.reports.selection import DEFAULT_PERIOD, ONE_DAY, Selection
from django_hitcount.series import hits_by_day
from django_hitcount.status import get_flush_status

LATE_AFTER = datetime.timedelta(minutes=15)
"""How long hits may wait for a flush before the report says so. Flushes may be minutes apart."""

ROWS = 10
"""Objects of a ranking on the page."""

ROWS_AT_A_TIME = 1000
"""Rows of a file whose objects are loaded together. The first of them have their visitors, too."""

VISITORS_AT_A_TIME = 100
"""Rows whose visitors are read together: a day may have 12 KB."""

FILES = ("days", "top", "rising", "falling", "refused")
"""The tables that can be downloaded, by the name in an address."""


class HitReportAdmin(ListAdmin):
    """
    The report, in place of a list of slots. It needs the permission to view it.

    ``admin.site`` has it without your doing. Register it with an AdminSite of your own:
    ``site.register(HitSlot, HitReportAdmin)``.
    """

    def changelist_view(  # type: ignore[override]  # A file is streamed.
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """Show the report, or return one of its tables as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        choice = SelectionForm(request.GET.dict(), models=find_models(), files=FILES)
        selection = choice.selection
        if table := choice.cleaned_data.get("csv"):
            chosen = selection.parameters
            parts = [table, chosen.get("counter", ""), chosen.get("model", "")]
            return csv_file(file_name(selection.period, *parts), read_file(table, selection))
        report = read_report(selection)
        status = get_flush_status() if get_buffer().keeps_hits else None
        waiting_since = status and status.oldest_pending_at
        context = {
            **page_context(self, request, choice),
            "title": _("Hits"),
            "report": report,
            "days_with_hits": find_days_with_hits(selection) if report["is_empty"] else None,
            "model_name": selection.model and selection.model._meta.verbose_name_plural,
            **{
                order.name.lower(): self._link(request, rows, selection)
                for order, rows in report["rankings"].items()
            },
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


def find_days_with_hits(selection: Selection) -> tuple[datetime.date, datetime.date] | None:
    """
    Return days up to the newest one that is over and has hits that are compacted; None without one.

    Costs a query.
    """
    using, days = hits_alias(), int(DEFAULT_PERIOD)
    rows = DailyModelHits.objects.using(using).filter(
        content_type_id__in=selection.content_type_ids,
        counter=selection.counter,
        day__range=(EARLIEST_DAY + days * ONE_DAY, day_of() - ONE_DAY),
        hits__gt=0,
    )
    with savepoint(using):
        newest: datetime.date | None = rows.aggregate(newest=Max("day"))["newest"]
    return days_until(newest, days) if newest else None


def read_refused(selection: Selection) -> list[RefusedRow]:
    """
    Return the refused hits of the counter in the period by reason, the most frequent first.

    Costs a query.
    """
    refused = RefusedHitSlot.objects.using(hits_alias()).filter(
        day__range=selection.period.ends, counter=selection.counter
    )
    sums = refused.values_list("refusal").annotate(sum=Sum("hits")).order_by("-sum", "refusal")
    reasons, whole = reasons_by_name(), sum(int(hits) for _, hits in sums)
    return [
        RefusedRow(refusal, reasons.get(refusal, ""), int(hits), share_of(int(hits), whole))
        for refusal, hits in sums
    ]


def read_report(selection: Selection) -> dict[str, Any]:
    """
    Read all numbers of a report, for the template.

    Costs up to eight queries, whatever the number of models, objects and hits: one for the hits by
    day, one for the refused ones, one or two for the rankings, one for the visitors if they are
    counted, and one for the objects of each of up to three models.
    """
    hits, before, today = _read_days(selection)
    rankings = compare_objects(_scope(selection), ROWS)
    first = {order: ranking.first(ROWS) for order, ranking in rankings.items()}
    keys = {ranked.object_key for rows in first.values() for ranked in rows}
    objects = load_objects(keys, selection.models, most_models=MOST_MODELS)
    numbers = sum_up(hits, before)
    visitors = _read_visitors(first[Order.TOP], selection)
    rows = {
        order: _describe(ranked, objects, visitors, selection, numbers["total"])
        for order, ranked in first.items()
    }
    refused = read_refused(selection)
    refused_hits = sum(row.hits for row in refused)
    return {
        **numbers,
        "today": today,
        "rankings": rows,
        "lacks_visitors": None in [row.visitors for row in rows[Order.TOP]],
        # Whether no other object rose or fell as much as these.
        "is_certain": all(ranking.proves(ROWS) for ranking in rankings.values()),
        "refused": refused,
        "refused_hits": refused_hits,
        # Refused hits are counted for all models together.
        "refused_share": (
            None if selection.model else share_of(refused_hits, refused_hits + numbers["total"])
        ),
    }


def read_file(name: str, selection: Selection) -> Iterator[str]:
    """
    Read one of FILES, with all rows of its table, piece by piece.

    Costs a query for each thousand objects of a model.
    """
    if name == "refused":
        return refused_csv(read_refused(selection))
    if name in ("rising", "falling"):
        return objects_csv(_stream(Order[name.upper()], selection), has_shares=False)
    hits, before, _today = _read_days(selection)
    if name == "days":
        return days_csv(hits, before)
    return objects_csv(_stream(Order.TOP, selection, sum(hits.values())), has_shares=True)


def _read_days(selection: Selection) -> tuple[Days, Days, int | None]:
    """
    Return the hits by day of the period, and of the one before.

    Also returns those of today, beside a period that is over, unless it ended ten years ago. Costs
    a query, and one for each of the overviews.
    """
    period, (first_day, last_day) = selection.period, selection.period.read_days
    read = partial(hits_by_day, first_day=first_day, last_day=last_day, counter=selection.counter)
    left_out = read(selection.overviews) if selection.overviews else {}
    days = {day: hits - left_out.get(day, 0) for day, hits in read(selection.model).items()}
    today = None if period.is_today else days.get(period.today)
    return pick_days(days, period), pick_days(days, period.before), today


def _scope(selection: Selection) -> Scope:
    """Return what is ranked."""
    before = selection.period.before
    return Scope(
        content_type_ids=selection.content_type_ids,
        counter=selection.counter,
        weights=weigh_days(selection.period.list_days()),
        before=before.list_days() if before else (),
    )


def _stream(order: Order, selection: Selection, total: int = 0) -> Iterator[ObjectRow]:
    """Yield all rows of a ranking, the first thousand of Order.TOP with their visitors."""
    ranked = stream_objects(_scope(selection), order)
    shows_visitors = order is Order.TOP
    while some := [*islice(ranked, ROWS_AT_A_TIME)]:
        objects = load_objects({row.object_key for row in some}, selection.models)
        visitors = _read_visitors(some, selection) if shows_visitors else {}
        yield from _describe(some, objects, visitors, selection, total)
        shows_visitors = False


def _describe(
    ranked: Iterable[RankedKey],
    objects: Mapping[ObjectKey, Model],
    visitors: Mapping[ObjectKey, int],
    selection: Selection,
    total: int,
) -> list[ObjectRow]:
    """Return the rows of objects. Their shares are those of ``total``, unless it is 0."""
    is_compared = selection.period.before is not None
    return [
        ObjectRow(
            key=key,
            name=label_object(objects[key]) if key in objects else key[1],
            obj=objects.get(key),
            model_name=str(selection.models[key[0]]._meta.verbose_name),
            hits=hits,
            before=before if is_compared else None,
            share=share_of(hits, total),
            visitors=visitors.get(key) or None,  # There are hits: with 0, nobody counted visitors.
        )
        for key, hits, before in ranked
    ]


def _read_visitors(ranked: Sequence[RankedKey], selection: Selection) -> dict[ObjectKey, int]:
    """Read the visitors of the period, if the report shows them, and if they can be read now."""
    found: dict[ObjectKey, int] = {}
    days = selection.period.ends
    for some in split(ranked if selection.shows_visitors else (), VISITORS_AT_A_TIME):
        keys = [CounterKey(*row.object_key, selection.counter) for row in some]
        # Not as a page: a slow file must not stop the reads of all pages.
        with suppress(BufferUnavailable):
            numbers = read_numbers([Number(key, *days, True) for key in keys])
            found |= {number.key[:2]: int(count) for number, count in numbers.items()}
    return found
