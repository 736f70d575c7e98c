"""Hits and visitors of an object or a list, of all time or of some days."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest
from django.template import Context, Template

from django_hitcount import get_hits, get_refused_hits, get_visitors, popular, record_hit
from django_hitcount.counters.days import day_of
from django_hitcount.counters.numbers import Number
from django_hitcount.db import sums
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import with_hits, with_visitors
from django_hitcount.numbers import read_numbers
from tests.app.models import Article, Page, Photo, Plain
from tests.redis_server import sends
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)


def days_ago(days: int) -> datetime.date:
    return day_of() - datetime.timedelta(days=days)


@pytest.fixture
def objects(rule):
    """Objects with keys of several types. Each has hits of three days; some are flushed."""
    rule(visitors=True)
    objects = [
        Article.objects.create(title="Tea"),
        Photo.objects.create(),
        Page.objects.create(path="/a:b/"),
        Plain.objects.create(name="no mixin"),
    ]
    for n, obj in enumerate(objects, 1):
        record_hit(obj, request_of(1), amount=n, at=days_ago(8))
        record_hit(obj, request_of(1), amount=10 * n, at=days_ago(3))
    flush_hits()
    for n, obj in enumerate(objects, 1):
        record_hit(obj, request_of(2), amount=100 * n, at=days_ago(3))
        record_hit(obj, request_of(2), amount=1000 * n)
    return objects


PERIODS = [
    ({}, 1111),
    ({"days": 1}, 1000),
    ({"days": 7}, 1110),
    ({"first_day": 8, "last_day": 3}, 111),
    ({"first_day": 3}, 1110),
]


def on_days(period):
    """Replace numbers of days ago with dates."""
    return {k: v if k == "days" else days_ago(v) for k, v in period.items()}


@pytest.mark.parametrize(("period", "hits"), PERIODS)
def test_hits(objects, period, hits):
    period = on_days(period)

    expected = {obj: hits * n for n, obj in enumerate(objects, 1)}
    assert get_hits(objects, **period) == expected
    assert {obj: get_hits(obj, **period) for obj in objects} == expected
    flush_hits()
    assert get_hits(objects, **period) == expected


@pytest.mark.parametrize("period", [{}, {"days": 7}])
def test_a_list_costs_what_one_object_costs(redis_buffer, django_assert_num_queries, period):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(30))
    for article in articles:
        record_hit(article)
    get_hits(articles)

    with sends() as sent, django_assert_num_queries(1 if period else 0):
        assert {*get_hits(articles, **period).values()} == {1}
    assert sent() == 1


def test_a_flush_between_the_two_readings_changes_nothing(objects):
    read = sums.read_sums

    def flush_first(*args, **kwargs):
        flush_hits()
        return read(*args, **kwargs)

    with mock.patch.object(sums, "read_sums", flush_first):
        assert [*get_hits(objects, days=7).values()] == [1110, 2220, 3330, 4440]


@pytest.mark.parametrize(
    "period",
    [
        {"days": 0},
        {"days": True},
        {"days": 7, "first_day": datetime.date(2026, 1, 1)},
        {"days": 7, "last_day": datetime.date(2026, 1, 1)},
        {"last_day": datetime.date(2026, 1, 1)},
        {"first_day": datetime.date(9999, 1, 1)},
        {"first_day": "2026-01-01"},
        {"first_day": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)},
    ],
)
@pytest.mark.parametrize("read", [get_hits, get_visitors])
def test_invalid_days(rule, read, period):
    rule(visitors=True)
    with pytest.raises(InvalidArgument, match=r"Invalid (range|day|number of days): .*Pass "):
        read([], **period)


def test_days_of_refused_hits():
    with pytest.raises(InvalidArgument, match="Invalid number of days: 0"):
        get_refused_hits(days=0)


@pytest.mark.parametrize("obj", ["text", b"x", None, 5, Article])
@pytest.mark.parametrize("read", [get_hits, get_visitors])
def test_what_is_no_object(rule, read, obj):
    rule(visitors=True)
    with pytest.raises(UnsavedObject):
        read(obj)


@pytest.mark.parametrize(
    ("period", "visitors"), [({}, 1), ({"days": 7}, 3), ({"first_day": 8, "last_day": 3}, 3)]
)
def test_visitors(objects, period, visitors):
    period = on_days(period)

    assert get_visitors(objects, **period) == dict.fromkeys(objects, visitors)
    assert get_visitors(objects[0], **period) == visitors


class TestTags:
    @pytest.fixture
    def show(self, objects):
        def show(tag: str) -> str:
            context = {
                "article": Article.objects.get(),
                "first": days_ago(8),
                "last": days_ago(3),
                "request": request_of(3),
            }
            return Template("{% load hitcount %}" + tag).render(Context(context))

        return show

    @pytest.mark.parametrize(
        ("arguments", "hits", "visitors"),
        [
            ("days=7", 1110, 3),
            ("first_day=first last_day=last", 111, 3),
            ("first_day=last", 1110, 3),
        ],
    )
    def test_days(self, show, arguments, hits, visitors):
        tags = f"{{% hits article {arguments} %}} {{% visitors article {arguments} %}}"

        assert show(tags + "," + tags) == f"{hits} {visitors},{hits} {visitors}"

    def test_redis_keeps_no_visitors_of_a_range_that_is_over(self, show, redis):
        """What it keeps are ranges that end today: it knows which of their days are open."""
        show("{% visitors article first_day=first last_day=last %}")

        assert not [*redis.scan_iter("*:kept_visitors:*")]

    def test_popular_objects(self, show):
        flush_hits()

        listed = '{% popular_objects "app.Article" 5 days=7 as found %}{{ found.0.hits }}'
        assert show(listed) == "1110"

    @pytest.mark.parametrize("label", ["Article", "app.Nothing", "", "a.b.c"])
    def test_name_that_is_no_model(self, show, label):
        with pytest.raises(InvalidArgument, match=f"Invalid source: '{label}'. Pass the name"):
            show(f'{{% popular_objects "{label}" 5 %}}')


class TestAnnotations:
    """SQL knows what a flush has written; the objects have what is true now."""

    def test_hits(self, objects):
        more = Article.objects.create(title="Coffee")
        record_hit(more, amount=5000)
        flush_hits()
        record_hit(objects[0], amount=9000)

        assert {a.pk: a.hits for a in Article.objects.with_hits()} == {
            objects[0].pk: 10111,
            more.pk: 5000,
        }
        flush_hits()
        assert [a.hits for a in Article.objects.with_hits().order_by("-hits")] == [10111, 5000]
        assert Article.objects.with_hits().filter(hits__gt=6000).get() == objects[0]

    @pytest.mark.parametrize("model", [Article, Photo, Page, Plain])
    def test_visitors(self, objects, model):
        flush_hits()

        found = with_visitors(model.objects.all(), days=7)
        assert found.filter(visitors=3).order_by("-visitors").get().visitors == 3
        assert found.filter(visitors__gt=3).count() == 0
        assert found.values_list("visitors", flat=True).get() == 3
        assert with_visitors(model.objects.all()).filter(visitors=1).count() == 1

    def test_of_an_object_without_any(self, objects):
        flush_hits()
        empty = Article.objects.create(title="none")

        assert with_visitors(Article.objects.all()).filter(visitors=0).get() == empty

    def test_both(self, objects):
        flush_hits()

        found = with_visitors(with_hits(Plain.objects.all()), days=7).get()
        assert (found.hits, found.visitors) == (4444, 3)


class TestRankings:
    def test_hits_of_the_period_are_on_the_objects(self, objects):
        flush_hits()

        (article,) = popular(Article, 5, days=7)
        assert article.hits == 1110
        assert get_hits(article) == 1111
        article.record_hit()
        assert article.hits == 1112

    def test_until_the_object_is_read_again(self, objects):
        flush_hits()
        (article,) = popular(Article, 5, days=7)

        article.refresh_from_db()
        assert article.hits == 1111

    def test_under_another_name(self, objects):
        flush_hits()

        (article,) = popular(Article, 5, days=7, name="in_week")
        assert (article.in_week, article.hits) == (1110, 1111)
        assert Article.objects.popular(5, days=7, name="in_week") == [article]

    def test_of_objects_with_hits(self, objects):
        flush_hits()

        (article,) = Article.objects.with_hits().popular(5, days=7)
        assert article.hits == 1110


def test_a_total_and_some_days_are_read_together(buffer):
    article = Article.objects.create(title="Tea")
    today = day_of()
    yesterday = days_ago(1)
    record_hit(article)
    record_hit(article, amount=10, at=yesterday)
    key = counter_key(article, counter="views")
    days = [Number(key, day, today) for day in (yesterday, today)]

    assert read_numbers([Number(key), *days]) == {Number(key): 11, days[0]: 11, days[1]: 1}
