"""P3: what a hit, a total and a list cost, as Redis and Django count it."""

from __future__ import annotations

import re

import pytest
from django.db import connection, transaction
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from django_hitcount import numbers
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits, refresh_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.redis_server import round_trips, sends

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
    record_hits(articles)
    return articles


def test_record_and_show_is_one_round_trip_and_no_sql(redis, articles, django_assert_num_queries):
    with round_trips(redis) as trips, django_assert_num_queries(0):
        assert record_hit(articles[0]).total == 2

    assert trips() == 1


def test_a_flush_in_between_changes_nothing(redis, articles, django_assert_num_queries):
    flush_hits()

    with round_trips(redis) as trips, django_assert_num_queries(0):
        assert record_hit(articles[0]).total == 2

    assert trips() == 1


def test_page_that_counts_and_shows_is_one_round_trip_and_no_sql(
    redis, articles, django_assert_num_queries
):
    context = Context({"article": articles[0], "request": RequestFactory(headers=BROWSER).get("/")})
    tag = Template("{% load hitcount %}{% hit_count article %}|{% hit_count article %}")

    with round_trips(redis) as trips, django_assert_num_queries(0):
        assert tag.render(context) == "2|2"

    assert trips() == 1


def test_list_without_a_request_shows_what_was_read_for_it(articles, django_assert_num_queries):
    """As a mail that is rendered by a task."""
    source = "{% prefetch_hits articles %}{% for a in articles %}{% hit_count a %}{% endfor %}"
    tag = Template("{% load hitcount %}" + source)
    context = Context({"articles": Article.objects.in_bulk().values()})

    with sends() as trips, django_assert_num_queries(0):
        assert tag.render(context) == "1" * 100

    assert trips() == 1


@pytest.fixture
def show(settings, articles):
    """Returns a function that renders tags for a new page, and returns its round trips."""
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "COUNTERS": {f"c{n}": {} for n in range(25)},
    }

    def render(source):
        request = RequestFactory(headers=BROWSER).get("/")
        article = Article.objects.get(pk=articles[0].pk)  # It remembers nothing.
        context = Context({"article": article, "request": request})
        with sends() as sent:
            Template("{% load hitcount %}" + source).render(context)
        return sent()

    return render


@pytest.mark.parametrize(("numbers", "trips"), [(5, 1), (20, 1), (21, 2), (25, 6)])
def test_a_page_that_counts_brings_twenty_numbers_along(show, numbers, trips):
    tags = [f"{{% hits article counter='c{n}' %}}" for n in range(numbers)]
    page = "{% hit_count article %}" + "".join(tags)
    show(page)  # The process learns what it shows.
    show(page)

    assert show(page) == trips


def test_a_page_that_counts_nothing_reads_each_number_by_itself(show):
    page = "{% hits article %}{% hits article counter='c1' %}{% hits article %}"
    show(page)

    assert show(page) == 2


def test_each_counter_that_a_page_counts_is_a_round_trip(show):
    page = "{% hit_count article %}{% hit_count article counter='c1' %}"
    show(page)

    assert show(page) == 2


def test_first_hit_loads_the_total_with_one_query_and_one_more_round_trip(
    redis, redis_buffer, django_assert_num_queries
):
    article = Article.objects.create(title="new")
    record_hit(Article.objects.create(title="the content type is known, the script loaded"))

    with round_trips(redis) as trips, django_assert_num_queries(1):
        assert record_hit(article).total == 1

    assert trips() == 2


def test_recording_a_hundred_objects_is_one_round_trip(redis, articles, django_assert_num_queries):
    with sends() as trips, django_assert_num_queries(0):
        assert {hit.total for hit in record_hits(articles)} == {2}

    assert trips() == 1


def test_totals_of_a_hundred_objects_are_one_round_trip(redis, articles, django_assert_num_queries):
    with sends() as trips, django_assert_num_queries(0):
        assert set(get_hits(articles).values()) == {1}

    assert trips() == 1


def test_list_of_a_hundred_objects_is_one_query_and_one_round_trip(
    articles, django_assert_num_queries
):
    with sends() as trips, django_assert_num_queries(1):
        assert {article.hits for article in Article.objects.with_hits()} == {1}

    assert trips() == 1


def test_list_with_totals_and_visitors_is_one_query_and_one_round_trip(
    redis_buffer, settings, django_assert_num_queries
):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
    record_hits(articles, RequestFactory(headers=BROWSER).get("/"))
    shown = Article.objects.with_hits().with_visitors(days=7)
    assert len(shown) == 100

    with sends() as trips, django_assert_num_queries(1):
        assert {(article.hits, article.visitors) for article in shown.all()} == {(1, 1)}

    assert trips() == 1


def test_totals_that_redis_does_not_know_cost_one_query_for_all(
    redis, articles, django_assert_num_queries
):
    flush_hits()
    redis.flushall()
    get_hits(articles[0])

    with sends() as trips, django_assert_num_queries(1):
        assert set(get_hits(articles).values()) == {1}

    assert trips() == 2


@pytest.mark.parametrize("count", [1, 100])
def test_without_redis_a_hit_is_two_upserts_and_one_sum(count):
    """However many objects are hit at once."""
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(count))
    get_hits(articles[0])

    with CaptureQueriesContext(connection) as queries:
        record_hits(articles)

    # Limits of waits for locks go with a statement, not before it.
    statements = [re.split("; | FOR ", query["sql"])[-1].split()[0] for query in queries]
    assert [word for word in statements if word not in {"BEGIN", "COMMIT"}] == [
        "INSERT",
        "INSERT",
        "SELECT",
    ]


def test_long_list_takes_several_round_trips(redis_buffer, monkeypatch):
    """One for all objects would take longer than Redis may for a call."""
    monkeypatch.setattr(numbers, "HITS_AT_A_TIME", 10)
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(25))
    record_hits(articles, amount=3)
    assert {article.hits for article in Article.objects.with_hits()} == {3}

    with sends() as trips:
        assert {article.hits for article in Article.objects.with_hits()} == {3}
    assert trips() == 3


def test_iterator_in_a_transaction_is_not_read_again_after_it(redis_buffer):
    """It may be of millions."""
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(25))
    record_hits(articles, amount=3)
    refresh_hits()
    with transaction.atomic():
        found = Article.objects.with_hits().iterator(chunk_size=10)
        assert {article.hits for article in found} == {3}
        assert not connection.run_on_commit
        assert {article.hits for article in Article.objects.with_hits()} == {3}
    with sends() as trips:
        assert {article.hits for article in Article.objects.with_hits()} == {3}
    assert trips() == 1
