"""Checked by mypy, never run: what the public names take and return."""

from __future__ import annotations

import datetime
from typing import Any, assert_type

from django.contrib.auth.models import User, UserManager
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from django_hitcount import (
    Hit,
    Throttle,
    Visitors,
    acorrect_hits,
    aforget_hits,
    aget_hits,
    amove_hits,
    apopular,
    arecord_hit,
    atrending,
    compact_hits,
    correct_hits,
    export_hits,
    flush_hits,
    forget_hits,
    get_flush_status,
    get_hits,
    get_refused_hits,
    get_visitors,
    hits_by_day,
    hits_by_month,
    hits_by_week,
    import_hits,
    move_hits,
    popular,
    prefetch_hits,
    record_hit,
    record_hits,
    refresh_hits,
    refusals,
    register,
    trending,
    undo_import,
    visitors_by_day,
)
from django_hitcount.counters.days import day_of
from django_hitcount.fields import HitCountField
from django_hitcount.importing import Column, CsvFiles, ImportSummary, LogFiles, Objects
from django_hitcount.maintenance.flushing import Flush
from django_hitcount.models import (
    Correction,
    Counter,
    HitCountManager,
    HitCountMixin,
    HitCountQuerySet,
    HitCountSum,
    with_hits,
)
from django_hitcount.pages.models import Page, WholeSite
from django_hitcount.status import FlushStatus
from django_hitcount.testing import BrowserClient, assert_hits, override_hitcount
from django_hitcount.views import count_download, counts
from tests.app import models as app
from tests.app.models import LiveHitCountQuerySet


class Article(HitCountMixin, models.Model):
    views = HitCountField(counter="views", db_index=False)

    class Meta:
        app_label = "app"


def reads(article: Article, day: datetime.date) -> None:
    assert_type(article.hits, int)
    assert_type(article.get_hits(first_day=day, last_day=day, counter="downloads"), int)
    assert_type(get_hits(article, counter="downloads"), int)
    assert_type(get_hits([article]), dict[Article, int])
    get_hits(article, "downloads")  # type: ignore[call-overload]
    get_hits([article], "downloads")  # type: ignore[call-overload]
    assert_type(get_hits(article, first_day=day, last_day=day), int)


def columns(article: Article) -> None:
    assert_type(article.views, int)
    app.Article.objects.annotate(sum=HitCountSum("tags", counter="downloads"))
    HitCountSum("tags", "downloads")  # type: ignore[call-arg]


def rankings(article: Article) -> None:
    assert_type(popular(Article, 3, days=7), list[Any])
    trending([Article, app.Recipe.objects.all()], 3, half_life_days=0.5)
    popular(Article, 3, "views")  # type: ignore[call-arg]
    popular(Article)  # type: ignore[call-arg]
    trending(article, 3)  # type: ignore[arg-type]


def days(article: Article, day: datetime.date) -> None:
    assert_type(hits_by_day(article, first_day=day, last_day=day), dict[datetime.date, int])
    assert_type(
        hits_by_week([Article, app.Recipe], first_day=day, last_day=day), dict[datetime.date, int]
    )
    assert_type(
        hits_by_month(None, first_day=day, last_day=day, counter="views"), dict[datetime.date, int]
    )
    assert_type(visitors_by_day(article, first_day=day, last_day=day), dict[datetime.date, int])
    assert_type(article.hits_by_day(first_day=day, last_day=day), dict[datetime.date, int])
    assert_type(
        app.Article.objects.hits_by_week(first_day=day, last_day=day), dict[datetime.date, int]
    )
    hits_by_day(article, first_day="2026-01-01", last_day=day)  # type: ignore[arg-type]
    assert_type(get_flush_status(), FlushStatus)
    prefetch_hits([article], counters=["views"], visitors_days=7)


def corrects(article: Article, day: datetime.date, user: User) -> None:
    assert_type(correct_hits(article, -1, day=day, reason="bot", user=user), Correction)
    correct_hits(article, 1, day=day, reason="bot", user=5)  # type: ignore[arg-type]
    correct_hits(article, 1, day=day, user=user)  # type: ignore[call-arg]


def records(article: Article, request: HttpRequest) -> None:
    assert_type(article.record_hit(request), Hit)
    assert_type(record_hit(article, request, counter="views", amount=-1), Hit)
    assert_type(record_hits([article], at=datetime.date(2026, 1, 1)), list[Hit])
    assert_type(record_hit(article).total, int | None)
    assert_type(record_hit(Counter("newsletter"), request), Hit)
    assert_type(get_hits([Counter("newsletter")]), dict[Counter, int])
    assert_type(Counter.objects.popular(3), list[Counter])
    assert_type(Page.objects.popular(3, days=7), list[Page])
    assert_type(WholeSite().get_visitors(), Visitors)
    assert_type(record_hit(article).refusal, str | None)
    record_hit(article, request, refusals=[refusals.bot, lambda context: context.obj == article])
    record_hit(article, request, refusals=["bot"])  # type: ignore[list-item]
    record_hit(article, request, "views")  # type: ignore[call-arg]
    record_hit(article, amount="1")  # type: ignore[arg-type]


@counts(lambda request, pk: app.Article.objects.get(pk=pk), counter="downloads", refusals=())
def view(request: HttpRequest, pk: int) -> HttpResponse:
    article = app.Article.objects.get(pk=pk)
    return count_download(article, request, HttpResponse(), refusals=[])


assert_type(view(HttpRequest(), 5), HttpResponse)


async def twins(article: Article, day: datetime.date) -> None:
    assert_type(await arecord_hit(article), Hit)
    assert_type(await article.arecord_hit(), Hit)
    assert_type(await article.arecord_hit(None, counter="downloads", amount=2), Hit)
    assert_type(await article.aget_visitors(first_day=day, last_day=day), Visitors)
    assert_type(await app.Article.objects.all().apopular(3, days=7), list[app.Article])
    await atrending(Article, 3, half_life_days=1)
    await article.aget_hits(first_day="2026-01-01", last_day=day)  # type: ignore[arg-type]
    assert_type(await aget_hits(article), int)


def flushes() -> None:
    assert_type(flush_hits(), Flush)


def managers() -> None:
    assert_type(app.Article.objects, HitCountManager[app.Article])
    assert_type(app.Article.objects.with_hits(), HitCountQuerySet[app.Article])
    assert_type(app.Featured.objects.with_visitors(days=7), HitCountQuerySet[app.Featured])
    assert_type(app.Article.objects.popular(3, days=7), list[app.Article])
    assert_type(app.Novel.published.live().trending(3), list[app.Novel])
    app.Article.objects.popular(3, "views")  # type: ignore[call-arg]
    app.Article.objects.popular("3")  # type: ignore[arg-type]
    assert_type(app.Reader.objects, UserManager[app.Reader])
    assert_type(with_hits(app.Reader.objects.all()), QuerySet[app.Reader, app.Reader])
    assert_type(app.Novel.published.with_hits(), LiveHitCountQuerySet)


async def the_rest(article: Article, user: User) -> None:
    register(User)
    forget_hits(article)
    forget_hits([article])
    await aforget_hits(article)
    move_hits(article, to=article)
    await amove_hits(article, to=article)
    move_hits(article, article)  # type: ignore[call-arg]
    forget_hits("5")  # type: ignore[arg-type]
    assert_type(Throttle("mail", 60).admit(), bool)
    assert_type(get_refused_hits(days=7)[0].hits, int)
    compact_hits()
    refresh_hits()
    assert_type(await acorrect_hits(article, 1, day=day_of(), reason="x", user=user), Correction)
    assert_type(await apopular(Article, 3, days=7), list[Any])
    assert_type(get_visitors(article), Visitors)
    assert_type(get_visitors([article], days=7), dict[Article, Visitors])
    assert_type(await aget_hits(article, days=7), int)
    assert_type(await aget_hits([article]), dict[Article, int])
    assert_type(article.get_hits(days=7), int)
    assert_type(await article.aget_hits(), int)
    assert_type(record_hit(article, once_per_request=True), Hit)
    with override_hitcount(SLOTS=2):
        assert_hits(article, 1, days=7)
    BrowserClient().get("/")


def imports(article: Article) -> None:
    assert_type(import_hits(CsvFiles(["hits.csv"]), dry_run=True), ImportSummary)
    import_hits(LogFiles(["access.log"], resolver="blog.urls.find"), strategy="larger")
    import_hits(Objects([(article, day_of(), 3)]), import_id="old")
    import_hits(Column("blog.Article", "views", day_of()), strategy="most")  # type: ignore[arg-type]
    assert_type(undo_import("old"), int)
    with open("hits.csv", "w", newline="") as file:
        assert_type(export_hits(file, counter="views"), int)
