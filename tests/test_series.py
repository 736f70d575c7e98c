"""Hits by day, week and month equal a plain sum of what was recorded."""

from __future__ import annotations

import datetime

import pytest
from asgiref.sync import async_to_sync
from django.core.paginator import Paginator
from django.db import connection
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from django_hitcount import series
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of, list_days
from django_hitcount.counters.keys import InvalidKey
from django_hitcount.db import slots
from django_hitcount.db import sums as daily_sums
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.sums import DayRange
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, LastBatch
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountMixin
from django_hitcount.recording import record_hit, record_hits
from tests.app.keys import Legacy, Priced, Word
from tests.app.models import (
    Article,
    Draft,
    Essay,
    Featured,
    OldPhoto,
    Page,
    Photo,
    Review,
    Small,
    Tag,
)
from tests.redis_server import sends
from tests.tables import another_collation
from tests.visiting import visit

FIRST, LAST = datetime.date(2026, 2, 26), datetime.date(2026, 3, 3)
DAYS = [FIRST + datetime.timedelta(days=n) for n in range(6)]

pytestmark = pytest.mark.django_db(transaction=True)


def put(obj, day, hits, *, slot=1, counter="views"):
    """Write hits as a flush does, or, in slot 0, as a compaction does."""
    key = counter_key(obj, counter=counter)
    slots.add_daily({(key, day): hits}, slot=slot)
    if slot == 0:
        row, _ = DailyModelHits.objects.get_or_create(
            content_type_id=key.content_type_id, counter=counter, day=day, defaults={"hits": 0}
        )
        row.hits += hits
        row.save()


def without_zeros(days):
    return {day: hits for day, hits in days.items() if hits}


@pytest.fixture
def articles():
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(3))


@pytest.fixture
def site(articles):
    """Hits on two models, in slot 0 and in others, within the range and outside."""
    page = Page.objects.create(path="a:b")
    put(articles[0], DAYS[0], 1, slot=0)
    put(articles[0], DAYS[0], 20)
    put(articles[0], DAYS[2], 300, slot=2)
    put(articles[1], DAYS[2], 4000)
    put(articles[2], DAYS[3], -50_000, slot=0)
    put(page, DAYS[2], 600_000, slot=0)
    put(page, DAYS[2], 7_000_000)
    for slot in (0, 1):
        put(articles[0], FIRST - datetime.timedelta(days=1), 8, slot=slot)
        put(articles[0], LAST + datetime.timedelta(days=1), 9, slot=slot)
    return articles


OF_ARTICLES = {DAYS[0]: 21, DAYS[2]: 4300, DAYS[3]: -50_000}


def test_object(site):
    found = series.hits_by_day(site[0], first_day=FIRST, last_day=LAST)

    assert [*found.items()] == [*zip(DAYS, [21, 0, 300, 0, 0, 0], strict=True)]
    assert site[0].hits_by_day(first_day=FIRST, last_day=LAST) == found


@pytest.mark.parametrize("source", [Article, Featured, Article.objects, Article.objects.all()])
def test_model(site, source, django_assert_num_queries):
    with django_assert_num_queries(1):
        found = series.hits_by_day(source, first_day=FIRST, last_day=LAST)

    assert [*found] == DAYS
    assert without_zeros(found) == OF_ARTICLES


def test_model_includes_what_its_default_manager_hides():
    for live in (True, False):
        put(Essay.objects.create(live=live), DAYS[0], 1)

    assert without_zeros(series.hits_by_day(Essay, first_day=FIRST, last_day=LAST)) == {DAYS[0]: 2}
    assert without_zeros(series.hits_by_day(Essay.objects, first_day=FIRST, last_day=LAST)) == {
        DAYS[0]: 1
    }


def test_whole_site(site, django_assert_num_queries):
    with django_assert_num_queries(1):
        found = series.hits_by_day(None, first_day=FIRST, last_day=LAST)

    assert without_zeros(found) == {**OF_ARTICLES, DAYS[2]: 7_604_300}


@pytest.mark.parametrize("make", [list, tuple, set, iter])
def test_several_sources(site, make):
    sources = make([Article, Page.objects.filter(path="a:b")])

    found = series.hits_by_day(sources, first_day=FIRST, last_day=LAST)
    assert found == series.hits_by_day(None, first_day=FIRST, last_day=LAST)


def test_page_of_a_paginator(site):
    page = Paginator(Article.objects.order_by("pk"), 2).page(2)

    assert without_zeros(series.hits_by_day(page, first_day=FIRST, last_day=LAST)) == {
        DAYS[3]: -50_000
    }


def test_object_that_is_loaded_when_it_is_used(site):
    lazy = SimpleLazyObject(lambda: site[1])

    assert without_zeros(series.hits_by_day(lazy, first_day=FIRST, last_day=LAST)) == {
        DAYS[2]: 4000
    }


@pytest.mark.parametrize("limit", [5000, 2])
def test_querysets(site, monkeypatch, limit):
    """With few objects and with many, filtered, sliced, united, and with another order."""
    monkeypatch.setattr(series, "OBJECTS_AT_A_TIME", limit)
    pks = [article.pk for article in site]
    rows = Article.objects.order_by("-pk")
    sources = {
        rows.filter(pk__in=pks[1:]): {DAYS[2]: 4000, DAYS[3]: -50_000},
        rows.filter(pk__in=pks): OF_ARTICLES,
        rows[1:]: {DAYS[0]: 21, DAYS[2]: 4300},
        rows[:2]: {DAYS[2]: 4000, DAYS[3]: -50_000},
        Article.objects.filter(pk=pks[0]).union(Article.objects.filter(pk=pks[2])): {
            **OF_ARTICLES,
            DAYS[2]: 300,
        },
        rows.none(): {},
    }

    for source, expected in sources.items():
        assert without_zeros(series.hits_by_day(source, first_day=FIRST, last_day=LAST)) == expected


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has DISTINCT ON")
def test_distinct_fields(site):
    last_of_author = Article.objects.order_by("author", "-pk").distinct("author")

    found = series.hits_by_day(last_of_author, first_day=FIRST, last_day=LAST)
    assert without_zeros(found) == {DAYS[3]: -50_000}


def test_object_that_a_join_repeats_counts_once(site):
    for _ in range(2):
        Tag.objects.create().articles.add(site[0])

    found = series.hits_by_day(
        Article.objects.filter(tags__isnull=False), first_day=FIRST, last_day=LAST
    )
    assert without_zeros(found) == {DAYS[0]: 21, DAYS[2]: 300}


def test_related_manager_has_its_objects_alone(site):
    tag = Tag.objects.create()
    tag.articles.add(site[1])

    assert without_zeros(tag.articles.hits_by_day(first_day=FIRST, last_day=LAST)) == {
        DAYS[2]: 4000
    }


def test_children_are_some_of_the_objects_of_their_parent(articles):
    review = Review.objects.create(title="good")
    for obj, hits in [(review, 3), (articles[0], 40)]:
        put(obj, DAYS[0], hits, slot=0)
        put(obj, DAYS[0], hits)

    assert without_zeros(series.hits_by_day(Review, first_day=FIRST, last_day=LAST)) == {DAYS[0]: 6}
    assert without_zeros(series.hits_by_day(Article, first_day=FIRST, last_day=LAST)) == {
        DAYS[0]: 86
    }


@pytest.mark.parametrize("model", [Small, Article, Photo, OldPhoto, Page, Legacy, Word])
@pytest.mark.parametrize("limit", [5000, 1])
def test_each_type_of_key(model, limit, monkeypatch):
    monkeypatch.setattr(series, "OBJECTS_AT_A_TIME", limit)
    texts = {Page: ["a:b", "2026-02-26:x"], Legacy: ["b", "c"], Word: ["d", "e"]}
    keys = texts.get(model, [None, None])
    first, second = (model(pk=key) if key else model() for key in keys)
    for obj, hits in [(first, 3), (second, 40)]:
        obj.save()
        put(obj, DAYS[0], hits, slot=0)
        put(obj, DAYS[1], hits)

    for source, hits in [
        (first, 3),
        (model.objects.filter(pk=second.pk), 40),
        (model.objects.filter(pk__in=[first.pk, second.pk]), 43),
        (model, 43),
    ]:
        assert without_zeros(series.hits_by_day(source, first_day=FIRST, last_day=LAST)) == {
            DAYS[0]: hits,
            DAYS[1]: hits,
        }


def test_counters_are_apart(articles, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"downloads": {}}}
    for counter, hits in [("views", 1), ("downloads", 20)]:
        for slot in (0, 1):
            put(articles[0], DAYS[0], hits, slot=slot, counter=counter)

    for source in (articles[0], Article.objects.filter(pk=articles[0].pk), Article, None):
        found = series.hits_by_day(source, first_day=FIRST, last_day=LAST, counter="downloads")
        assert without_zeros(found) == {DAYS[0]: 40}


def test_weeks_begin_on_monday_and_months_on_the_first(articles):
    sunday, monday = datetime.date(2026, 3, 1), datetime.date(2026, 3, 2)
    for day, hits in [(FIRST, 1), (sunday, 20), (monday, 300), (LAST, 4000)]:
        put(articles[0], day, hits)

    assert articles[0].hits_by_week(first_day=FIRST, last_day=LAST) == {
        datetime.date(2026, 2, 23): 21,
        monday: 4300,
    }
    assert articles[0].hits_by_month(first_day=FIRST, last_day=LAST) == {
        datetime.date(2026, 2, 1): 1,
        sunday: 4320,
    }


def test_weeks_and_months_without_hits_are_there(articles):
    first, last = datetime.date(2025, 12, 29), datetime.date(2026, 3, 1)
    weeks = articles[0].hits_by_week(first_day=first, last_day=last)
    months = articles[0].hits_by_month(first_day=first, last_day=last)

    assert [day.isocalendar()[1:] for day in weeks] == [(week, 1) for week in range(1, 10)]
    assert [day.month for day in months] == [12, 1, 2, 3]
    assert {*weeks.values(), *months.values()} == {0}


def test_a_part_of_a_week_and_of_a_month(site):
    wednesday = datetime.date(2026, 2, 25)
    put(site[0], wednesday, 1_000_000)

    assert site[0].hits_by_week(first_day=DAYS[0], last_day=DAYS[0]) == {
        datetime.date(2026, 2, 23): 21
    }
    assert site[0].hits_by_month(first_day=DAYS[0], last_day=DAYS[0]) == {
        datetime.date(2026, 2, 1): 21
    }


@pytest.mark.parametrize("at", ["2026-03-29", "2026-10-25"])
def test_days_of_23_and_of_25_hours(articles, buffer, at):
    """On these days, clocks change in TIME_ZONE."""
    day = datetime.date.fromisoformat(at)
    zone = timezone.get_default_timezone()
    midnight = datetime.datetime.combine(day, datetime.time(), zone)
    next_midnight = datetime.datetime.combine(
        day + datetime.timedelta(days=1), datetime.time(), zone
    )
    second = datetime.timedelta(seconds=1)
    utc = datetime.UTC
    for moment, amount in [
        (midnight.astimezone(utc) - second, 1),
        (midnight.astimezone(utc), 20),
        (next_midnight.astimezone(utc) - second, 300),
        (next_midnight.astimezone(utc), 4000),
    ]:
        record_hit(articles[0], amount=amount, at=moment)
    around = day - datetime.timedelta(days=1), day + datetime.timedelta(days=1)

    for source in (articles[0], Article, None):
        assert [*series.hits_by_day(source, first_day=around[0], last_day=around[1]).values()] == [
            1,
            320,
            4000,
        ]


class TestHitsThatWait:
    @pytest.fixture
    def found(self, buffer, articles):
        """What all kinds of sources find: the hits of one article, and of all."""
        today = day_of()

        def read():
            of_one = [articles[0], Article.objects.filter(pk=articles[0].pk)]
            of_all = [Article, Article.objects.filter(pk__gt=0), Article.objects.order_by("pk")[:9]]
            return [
                {
                    series.hits_by_day(source, first_day=today, last_day=today)[today]
                    for source in sources
                }
                for sources in (of_one, [*of_all, None])
            ]

        return read

    def test_before_during_and_after_a_flush(self, found, articles):
        record_hits(articles)
        assert found() == [{1}, {3}]
        partitions = [*get_buffer().partitions()]
        batches = [get_buffer().claim(partition) for partition in partitions]
        assert found() == [{1}, {3}]
        record_hits(articles)
        assert found() == [{2}, {6}]
        for batch in filter(None, batches):
            flushing.apply(batch)
            assert found() == [{2}, {6}]
        for batch in filter(None, batches):
            get_buffer().settle(batch)
            assert found() == [{2}, {6}]
        flush_hits()
        compact()
        assert found() == [{2}, {6}]

    @pytest.mark.parametrize("kind", ["object", "model", "site"])
    def test_a_flush_while_it_is_read(self, found, articles, monkeypatch, kind):
        """It comes after the buffer was read, and before the tables are. No hit counts twice."""
        name = "read_days_of_counters" if kind == "object" else "read_days_of_model"
        read = getattr(daily_sums, name)

        def read_after_a_flush(*args, **kwargs):
            flush_hits()
            return read(*args, **kwargs)

        monkeypatch.setattr(daily_sums, name, read_after_a_flush)
        source = {"object": articles[0], "model": Article, "site": None}[kind]
        today = day_of()
        for times in (1, 2, 3):
            record_hits(articles)

            expected = times if kind == "object" else 3 * times
            assert series.hits_by_day(source, first_day=today, last_day=today) == {today: expected}

    @pytest.mark.skipif(connection.vendor != "mysql", reason="others unite all collations")
    @pytest.mark.parametrize(
        ("table", "column"),
        [(DailyModelHits, "counter"), (DailyHitSlot, "counter"), (LastBatch, "generation")],
    )
    def test_tables_may_have_different_collations(self, found, articles, table, column):
        with another_collation(table, column):
            for work in (flush_hits, compact, flush_hits):
                record_hits(articles)
                work()
            record_hits(articles)
            assert found() == [{4}, {12}]

    def test_a_flush_while_two_counters_are_read(self, found, articles, monkeypatch):
        read = daily_sums.read_days_of_counters

        def read_after_a_flush(*args):
            flush_hits()
            return read(*args)

        monkeypatch.setattr(daily_sums, "read_days_of_counters", read_after_a_flush)
        amounts = {"views": 1, "downloads": 10}
        keys = [counter_key(articles[0], counter=counter) for counter in amounts]
        today = day_of()
        for times in (1, 2, 3):
            for counter, amount in amounts.items():
                record_hits(articles, counter=counter, amount=amount)

            sums = series.read_counters(keys, DayRange(today, today))
            assert sums == {("views", today): times, ("downloads", today): 10 * times}

    def test_deleted_object(self, found, articles):
        record_hits(articles)
        articles[0].delete()
        flush_hits()
        record_hit(articles[1])

        today = day_of()
        assert series.hits_by_day(Article, first_day=today, last_day=today) == {today: 3}
        assert series.hits_by_day(None, first_day=today, last_day=today) == {today: 3}

    def test_partitions_that_are_left_from_another_setting(self, found, articles, settings):
        record_hits(articles)
        settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1}
        today = day_of()

        assert series.hits_by_day(Article, first_day=today, last_day=today) == {today: 3}

    def test_many_partitions(self, found, articles, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1024}
        many = Article.objects.bulk_create(Article(title=str(n)) for n in range(3000))
        record_hits(many)
        today = day_of()

        for source in (Article, Article.objects.filter(pk__gt=0), None):
            assert series.hits_by_day(source, first_day=today, last_day=today) == {today: 3000}


@pytest.mark.parametrize(
    ("source", "queries", "trips"),
    [("object", 1, 1), ("model", 1, 2), (None, 1, 2), ("queryset", 2, 1)],
)
def test_costs(redis_buffer, articles, django_assert_num_queries, source, queries, trips):
    record_hits(articles)
    sources = {
        "object": articles[0],
        "model": Article,
        "queryset": Article.objects.filter(pk__gt=0),
    }
    series.hits_by_day(sources.get(source), first_day=FIRST, last_day=day_of())
    series.hits_by_day(Article, first_day=FIRST, last_day=day_of())

    with sends() as sent, django_assert_num_queries(queries):
        series.hits_by_day(sources.get(source), first_day=FIRST, last_day=day_of())
    assert sent() == trips


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (Article(), UnsavedObject),
        (Priced, InvalidKey),
    ],
)
def test_source_that_is_not_counted(db, source, error):
    with pytest.raises(error):
        series.hits_by_day(source, first_day=FIRST, last_day=LAST)


@pytest.mark.parametrize("source", ["text", b"x", int, HitCountMixin, Draft, [Article, 5], ["a"]])
@pytest.mark.parametrize(
    "function", [series.hits_by_day, series.hits_by_week, series.hits_by_month]
)
def test_invalid_source(db, function, source):
    with pytest.raises(InvalidArgument, match=r"Invalid source: .*Pass a saved object, a model"):
        function(source, first_day=FIRST, last_day=LAST)


@pytest.mark.parametrize("days", [(LAST, FIRST), (FIRST, "today"), (None, FIRST), (None, None)])
@pytest.mark.parametrize(
    "function", [series.hits_by_day, series.hits_by_week, series.hits_by_month]
)
def test_invalid_days(function, days):
    with pytest.raises(InvalidArgument):
        function(Article, first_day=days[0], last_day=days[1])


@pytest.mark.parametrize("source", [Article, None, []])
def test_unknown_counter(source):
    with pytest.raises(InvalidArgument):
        series.hits_by_day(source, first_day=FIRST, last_day=LAST, counter="likes")


def test_async_twins(site):
    async def read():
        return [
            await series.ahits_by_day(None, first_day=FIRST, last_day=LAST),
            await site[0].ahits_by_day(first_day=FIRST, last_day=LAST),
            await Article.objects.ahits_by_week(first_day=FIRST, last_day=LAST),
            await Article.objects.filter(pk=0).ahits_by_month(first_day=FIRST, last_day=LAST),
        ]

    assert async_to_sync(read)() == [
        series.hits_by_day(None, first_day=FIRST, last_day=LAST),
        site[0].hits_by_day(first_day=FIRST, last_day=LAST),
        Article.objects.hits_by_week(first_day=FIRST, last_day=LAST),
        dict.fromkeys([datetime.date(2026, 2, 1), datetime.date(2026, 3, 1)], 0),
    ]


class TestVisitorsByDay:
    def test_each_day(self, rule, articles):
        rule("always", visitors=True)
        today = day_of()
        week_ago = today - datetime.timedelta(days=6)
        visit(articles[0], [1, 2, 1])
        flush_hits()
        visit(articles[0], [2, 3])

        found = articles[0].visitors_by_day(first_day=week_ago, last_day=today)
        assert [*found.values()] == [0] * 6 + [3]
        assert [*found] == list_days(week_ago, today)

    def test_costs(self, redis_rule, articles, django_assert_num_queries):
        redis_rule("always", visitors=True)
        visit(articles[0], [1])
        today = day_of()
        series.visitors_by_day(articles[0], first_day=today, last_day=today)

        with sends() as trips, django_assert_num_queries(1):
            assert series.visitors_by_day(articles[0], first_day=today, last_day=today) == {
                today: 1
            }
        assert trips() == 1

    @pytest.mark.parametrize("source", [None, Article, Article.objects.all()])
    def test_only_an_object_has_visitors(self, rule, source):
        rule("always", visitors=True)
        with pytest.raises(InvalidArgument, match="Visitors are kept by object"):
            series.visitors_by_day(source, days=7)

    def test_counter_without_visitors(self, articles):
        with pytest.raises(InvalidArgument):
            articles[0].visitors_by_day(first_day=FIRST, last_day=LAST)
