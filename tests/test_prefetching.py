"""A list that shows the numbers of its objects reads them together."""

from __future__ import annotations

import datetime

import pytest
from django.core.paginator import Paginator
from django.db import OperationalError
from django.template import Context, Template

from django_hitcount.counters.days import day_of
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.prefetching import aprefetch_hits, prefetch_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article, Page, Photo, Plain, Small
from tests.redis_server import sends
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)

LIST = (
    "{% load hitcount %}{% prefetch_hits objects counters='views,downloads' visitors_days='1, 7' %}"
    "{% for o in objects %}{% hits o %} {% hits o counter='downloads' %} "
    "{% visitors o %} {% visitors o days=7 %};{% endfor %}"
)


@pytest.fixture(params=["Database", "Redis"])
def site(request, redis, settings):
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "REDIS": "hitcount" if request.param == "Redis" else None,
        "COUNTERS": {"views": {"visitors": True}, "downloads": {}},
    }
    return request.param


@pytest.fixture
def objects(site):
    """Objects of several models: with the mixin and without it, with keys of several types."""
    objects = [
        Article.objects.create(title="Tea"),
        Small.objects.create(),
        Photo.objects.create(),
        Page.objects.create(path="/a:b/"),
        Plain.objects.create(name="no mixin"),
    ]
    record_hits(objects, request_of(1))
    record_hits(objects, request_of(2))
    record_hits(objects, counter="downloads", amount=5)
    return objects


def test_list_costs_nothing_more(objects, site, django_assert_num_queries):
    record_hits(objects, request_of(3), at=day_of() - datetime.timedelta(days=3))
    prefetch_hits(objects, counters=["views", "downloads"], visitors_days=(1, 7))

    with sends() as sent, django_assert_num_queries(2 if site == "Database" else 0):
        shown = Template(LIST).render(Context({"objects": objects}))
    assert shown == "3 5 2 3;" * 5
    assert sent() == (0 if site == "Database" else 1)
    with sends() as sent, django_assert_num_queries(0):
        assert [obj.hits for obj in objects[:4]] == [3] * 4
    assert sent() == 0


def test_totals_are_one_query_without_redis_and_none_with_it(
    objects, site, django_assert_num_queries
):
    with sends() as sent, django_assert_num_queries(1 if site == "Database" else 0):
        prefetch_hits(objects)
    assert sent() == (0 if site == "Database" else 1)


def test_what_redis_does_not_know_is_one_query_more(objects, redis, django_assert_num_queries):
    flush_hits()
    redis.flushall()
    prefetch_hits([])

    with django_assert_num_queries(1):
        prefetch_hits(objects)


def test_queryset_is_evaluated_once(objects, django_assert_num_queries):
    queryset = Article.objects.all()
    prefetch_hits(queryset)

    with django_assert_num_queries(0), sends() as sent:
        assert [article.hits for article in queryset] == [2]
    assert sent() == 0


def test_page_of_a_paginator(objects):
    page = Paginator(Article.objects.order_by("pk"), 10).page(1)
    prefetch_hits(page)

    with sends() as sent:
        assert [article.hits for article in page] == [2]
    assert sent() == 0


def test_what_has_no_hits_is_skipped(objects):
    unsaved = Article(title="preview")
    again = Article.objects.get(pk=objects[0].pk)

    prefetch_hits([None, unsaved, objects[0], again, objects[0]])
    record_hits(objects[1:2])
    assert (objects[0].hits, again.hits) == (2, 2)


@pytest.mark.parametrize("nothing", [[], None, Article.objects.none(), [None]])
def test_nothing_costs_nothing(site, nothing, django_assert_num_queries):
    template = Template("{% load hitcount %}{% prefetch_hits objects visitors_days=7 %}")
    with django_assert_num_queries(0), sends() as sent:
        assert template.render(Context({"objects": nothing})) == ""
    assert sent() == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"objects": ["tea"]}, UnsavedObject, "Cannot count hits of 'tea'"),
        ({"counters": ["likes"]}, InvalidArgument, "'likes'"),
        ({"counters": [["views"]]}, InvalidArgument, r"\['views'\]"),
        ({"visitors_days": 0}, InvalidArgument, "Invalid number of days: 0"),
        ({"visitors_days": ["x"]}, InvalidArgument, "Invalid number of days: 'x'"),
        (
            {"visitors_days": 1, "counters": ["downloads"]},
            InvalidArgument,
            "'downloads' does not count visitors",
        ),
    ],
)
def test_invalid_arguments_are_errors(site, arguments, error, message):
    with pytest.raises(error, match=message):
        prefetch_hits(**{"objects": [], **arguments})


@pytest.mark.parametrize("days", ["a", "", "1,,7", "-1", "1.5", "0"])
def test_invalid_days_in_a_template(site, days):
    template = Template("{% load hitcount %}{% prefetch_hits objects visitors_days=days %}")
    with pytest.raises(InvalidArgument, match=r"Invalid number of days: .*Pass a whole number"):
        template.render(Context({"objects": [], "days": days}))


def test_single_object_is_an_error(objects):
    with pytest.raises(InvalidArgument, match=r"Invalid objects: .*Pass a list or a queryset"):
        prefetch_hits(objects[0])


@pytest.mark.parametrize("value", ["1", "7.5", "'tea'"])
def test_what_is_no_list_in_a_template_is_an_error_as_for_other_tags(site, value):
    template = Template(f"{{% load hitcount %}}{{% prefetch_hits {value} %}}")
    with pytest.raises(UnsavedObject, match=f"Invalid objects: {value}. Pass a list or a queryset"):
        template.render(Context())


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ("counters=5", InvalidArgument, "Invalid counter: 5 .*Pass its name as a str"),
        ("visitors_days=7.5", InvalidArgument, "Invalid number of days: 7.5. Pass a whole number"),
    ],
)
def test_options_of_another_type_in_a_template_are_errors(site, option, error, message):
    template = Template(f"{{% load hitcount %}}{{% prefetch_hits objects {option} %}}")
    with pytest.raises(error, match=message):
        template.render(Context({"objects": []}))


def test_number_is_read_again_after_a_hit_on_the_object(objects):
    prefetch_hits(objects, visitors_days=1)
    objects[0].record_hit(request_of(3))

    source = "{% load hitcount %}{% hits o %} {% visitors o %}"
    assert Template(source).render(Context({"o": objects[0]})) == "3 3"
    assert Template(source).render(Context({"o": objects[1]})) == "2 2"


def test_tags_cost_nothing_after_with_hits_and_with_visitors(objects, django_assert_num_queries):
    (article,) = Article.objects.with_hits().with_visitors(days=7)

    source = "{% load hitcount %}{% hits o %} {% visitors o days=7 %}"
    with django_assert_num_queries(0), sends() as sent:
        assert Template(source).render(Context({"o": article})) == "2 2"
    assert sent() == 0


def test_server_that_is_away_breaks_no_page(objects, monkeypatch):
    def fail(*args, **kwargs):
        raise OperationalError("away")

    monkeypatch.setattr("django_hitcount.prefetching.counter_key", fail)
    prefetch_hits(objects)
    monkeypatch.undo()
    assert objects[0].hits == 2


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_async_twin_does_the_same(site):
    article = await Article.objects.acreate(title="Tea")
    await article.arecord_hit()
    await aprefetch_hits([article], visitors_days=1)

    with sends() as sent:
        assert article.hits == 1
    assert sent() == 0
