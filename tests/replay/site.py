"""A site with the pages of a log, to which the log is replayed."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import time_machine
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.test import Client
from django.urls import path

from django_hitcount.db.tables import DailyVisitors, RefusedHitSlot
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import DailyHitSlot, HitSlot
from django_hitcount.reading import get_visitors
from django_hitcount.series import hits_by_day
from tests.app.models import Article
from tests.replay.access_log import NOT_SENT, Asked
from tests.replay.counts import COUNTERS, Counts, due

REQUESTS_PER_FLUSH = 250


@dataclass(frozen=True, kw_only=True)
class Replay:
    due: Counts
    found: Counts
    series: dict[str, dict[datetime.date, int]]
    """The hits of the model by day, of each counter, with the last of them still in the buffer."""

    series_later: dict[str, dict[datetime.date, int]]
    """The same of the whole site, some days later, when only the tables have them."""

    report: dict[str, list[list[str]]]
    """The rows of the tables of the admin's report about these days."""

    pages: dict[str, str]
    """The pages of the log, by primary key."""

    visitors_later: dict[tuple[str, datetime.date], int]
    """The visitors some days later, when only the tables have them."""

    kept: bytes
    """Everything that was in the tables and in Redis at any time."""

    session_keys: list[str]
    is_exact: bool
    """Are visitors exact? They are estimates with Redis."""


def show_page(request: HttpRequest, pk: int) -> HttpResponse:
    context = RequestContext(request, {"page": Article.objects.get(pk=pk)})
    return HttpResponse(template().render(context))


@cache
def template() -> Template:
    tags = [f"{{% hit_count page counter={counter!r} %}}" for counter in COUNTERS]
    return Template("{% load hitcount %}" + "".join(tags))


urlpatterns = [path("<int:pk>/", show_page), path("admin/", admin.site.urls)]


def browser_of(name: str) -> Client:
    """A browser without a session, with one, or with that of a user who is logged in."""
    client = Client()
    if name.startswith("guest"):
        session = client.session
        session["cart"] = ["tea"]
        session.save()
    elif name != NOT_SENT:
        client.force_login(User.objects.get_or_create(username=name)[0])
    return client


class Site:
    """A site with the pages of a log."""

    def __init__(self, pages: Iterable[str], redis) -> None:
        self.redis = redis
        self.pks = {page: pk for pk, page in enumerate(sorted(set(pages)), 1)}
        self.pages = {str(pk): page for page, pk in self.pks.items()}
        self.articles = Article.objects.bulk_create(Article(pk=pk) for pk in self.pks.values())
        self.browsers: dict[tuple[str, str], Client] = {}
        self.kept = b""

    def serve(self, asked: Asked) -> None:
        key = (asked.name, asked.agent)
        if key not in self.browsers:
            self.browsers[key] = browser_of(asked.name)
        self.browsers[key].generic(
            asked.method,
            f"/{self.pks[asked.page]}/",
            headers={} if asked.agent == NOT_SENT else {"user-agent": asked.agent},
            REMOTE_ADDR=asked.address,
        )

    def flush(self) -> None:
        self.kept += everything(self.redis)
        flush_hits()
        self.kept += everything(self.redis)

    def counts(self, days: Iterable[datetime.date]) -> Counts:
        refused = RefusedHitSlot.objects.values_list("day", "counter", "refusal")
        hits = DailyHitSlot.objects.values_list("object_id", "counter", "day")
        totals = HitSlot.objects.values_list("object_id", "counter")
        return Counts(
            refused={tuple(key): n for *key, n in refused.annotate(Sum("hits"))},
            hits={(self.pages[pk], *key): n for pk, *key, n in hits.annotate(Sum("hits"))},
            totals={(self.pages[pk], key): n for pk, key, n in totals.annotate(Sum("hits"))},
            visitors={
                (self.pages[str(article.pk)], day): found
                for day in days
                for article, found in get_visitors(
                    self.articles, first_day=day, last_day=day
                ).items()
                if found
            },
        )

    def visitors_in_table(self) -> dict[tuple[str, datetime.date], int]:
        rows = DailyVisitors.objects.filter(counter="views").values_list("object_id", "day")
        return {(self.pages[pk], day): n for pk, day, n in rows.annotate(Sum("count"))}


def read_report(first_day: datetime.date, last_day: datetime.date) -> dict[str, list[list[str]]]:
    editor = Client()
    editor.force_login(User.objects.create_superuser("editor"))
    address = f"/admin/django_hitcount/hitslot/?first={first_day}&last={last_day}"
    files = {name: editor.get(f"{address}&csv={name}") for name in ("days", "top", "refused")}
    texts = {name: response.getvalue().decode() for name, response in files.items()}
    return {name: [*csv.reader(text.splitlines())][1:] for name, text in texts.items()}


def everything(redis) -> bytes:
    """All rows of the app and all keys and values in Redis, as they are."""
    kept = [
        value
        for model in apps.get_app_config("django_hitcount").get_models()
        for row in model._base_manager.values_list()
        for value in row
    ]
    readers = {b"hash": redis.hgetall, b"set": redis.smembers, b"string": redis.get}
    for key in redis.scan_iter(count=1000):
        kept += [key, readers[redis.type(key)](key)]
    return b"\n".join(map(raw, kept))


def raw(value: object) -> bytes:
    if isinstance(value, dict):
        return b"\n".join(map(raw, [*value, *value.values()]))
    if isinstance(value, set):
        return b"\n".join(map(raw, value))
    return value if isinstance(value, bytes | memoryview) else str(value).encode()


def run(log: list[Asked], redis, *, is_exact: bool) -> Replay:
    with time_machine.travel(log[0].at, tick=False) as clock:
        site = Site((asked.page for asked in log), redis)
        for number, asked in enumerate(log, 1):
            clock.move_to(asked.at)
            site.serve(asked)
            if number % REQUESTS_PER_FLUSH == 0:
                site.flush()
                compact_hits()
        days = log[0].day, log[-1].day
        series = {
            counter: hits_by_day(Article, first_day=days[0], last_day=days[1], counter=counter)
            for counter in COUNTERS
        }
        site.flush()
        found = site.counts({asked.day for asked in log})
        clock.shift(datetime.timedelta(days=3))
        site.flush()
        compact_hits()
        report = read_report(*days)
        return Replay(
            due=due(log),
            found=found,
            series=series,
            series_later={
                name: hits_by_day(None, first_day=days[0], last_day=days[1], counter=name)
                for name in COUNTERS
            },
            report=report,
            pages=site.pages,
            visitors_later=site.visitors_in_table(),
            kept=site.kept + everything(redis),
            session_keys=[
                client.session.session_key
                for (name, _), client in site.browsers.items()
                if name != NOT_SENT
            ],
            is_exact=is_exact,
        )
