"""Hits by day when the objects are in another database than the counts."""

from __future__ import annotations

import datetime

import pytest
from django.db import connections

from django_hitcount import series
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests.app.models import Article, Page, Photo
from tests.visiting import set_rule, visit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])

TODAY = day_of()
DAYS = TODAY - datetime.timedelta(days=1), TODAY
OTHER = {"default": "elsewhere", "elsewhere": "default"}


@pytest.fixture(params=OTHER)
def database(request, buffer, settings) -> str:
    """Where the objects are; the counts are in the other database."""
    if request.param == "default":
        settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    return request.param


def save_with_hits(objs, database):
    """Save objects, and record 3, 30 and 300 hits: a third each in slot 0, in others, and held."""
    for obj in objs:
        obj.save(using=database)
    for finish in ([flush_hits, compact], [flush_hits], []):
        for number, obj in enumerate(objs):
            record_hit(obj, amount=10**number, at=TODAY)
        for work in finish:
            work()


@pytest.fixture
def articles(database):
    articles = [Article(title=str(number)) for number in range(3)]
    save_with_hits(articles, database)
    # An object with the same key in the database of the counts: not the one that is meant.
    Article(pk=articles[2].pk, title="1").save(using=OTHER[database])
    return articles


@pytest.mark.parametrize("limit", [5000, 1])
def test_each_source(articles, database, monkeypatch, limit):
    monkeypatch.setattr(series, "OBJECTS_AT_A_TIME", limit)
    rows = Article.objects.using(database)
    ones = rows.filter(title="1")

    for source, hits in [
        (articles[1], 30),
        (ones, 30),
        (rows.exclude(title="1"), 303),
        (rows.order_by("title")[1:], 330),
        (rows.filter(title="0").union(ones), 33),
        ([ones, articles[0]], 33),
        (rows.none(), 0),
        (rows, 333),
        (Article, 333),
        (None, 333),
    ]:
        assert [*series.hits_by_day(source, first_day=DAYS[0], last_day=DAYS[1]).values()] == [
            0,
            hits,
        ]
    assert [*ones.hits_by_week(first_day=TODAY, last_day=TODAY).values()] == [30]
    assert [*articles[1].hits_by_month(first_day=TODAY, last_day=TODAY).values()] == [30]


@pytest.mark.parametrize("model", [Photo, Page])
def test_keys_of_other_types(database, model):
    objs = [model(**({"path": path} if model is Page else {})) for path in ("a:b", "c")]
    save_with_hits(objs, database)

    rows = model.objects.using(database).filter(pk=objs[1].pk)
    assert [*series.hits_by_day(rows, first_day=DAYS[0], last_day=DAYS[1]).values()] == [0, 30]


def test_queryset_costs_a_query_in_each(articles, database, django_assert_num_queries):
    rows = Article.objects.using(database).filter(title="1")
    series.hits_by_day(rows, first_day=DAYS[0], last_day=DAYS[1])

    with (
        django_assert_num_queries(1, connection=connections["default"]),
        django_assert_num_queries(1, connection=connections["elsewhere"]),
    ):
        series.hits_by_day(rows, first_day=DAYS[0], last_day=DAYS[1])


def test_visitors(articles, settings):
    set_rule(settings, visitors=True)
    visit(articles[0], [1, 2, 1], at=TODAY)
    flush_hits()
    visit(articles[0], [2, 3], at=TODAY)

    assert [*articles[0].visitors_by_day(first_day=DAYS[0], last_day=DAYS[1]).values()] == [0, 3]
