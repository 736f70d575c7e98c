"""``{% hits article days=7 %}``: the hits of the last days on a page."""

from __future__ import annotations

import datetime

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.counters.days import day_of
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.redis_server import round_trips

pytestmark = pytest.mark.django_db(transaction=True)


def show(source, article, request=None):
    context = Context({"article": article, "request": request})
    return Template("{% load hitcount %}" + source).render(context)


@pytest.fixture
def request_():
    return RequestFactory(headers=BROWSER).get("/")


@pytest.fixture
def article(buffer):
    """One hit today, 20 six days ago, and 300 seven days ago."""
    article = Article.objects.create(title="new")
    for days, amount in [(0, 1), (6, 20), (7, 300)]:
        record_hit(article, amount=amount, at=day_of() - datetime.timedelta(days=days))
    return article


@pytest.mark.parametrize(
    ("days", "printed"), [("1", "1"), ("6", "1"), ("7", "21"), ("8", "321"), ("None", "321")]
)
def test_last_days_with_today(article, days, printed):
    assert show(f"{{% hits article days={days} %}}", article) == printed


def test_after_a_flush(article):
    flush_hits()

    assert show("{% hits article days=7 as week %}{{ week|add:1 }}", article) == "22"


def test_another_counter(article, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"downloads": {}}}
    record_hit(article, counter="downloads")

    assert show("{% hits article counter='downloads' days=7 %}", article) == "1"


def test_second_tag_costs_nothing(redis, redis_buffer, request_, django_assert_num_queries):
    article = Article.objects.create(title="new")
    record_hit(article)
    show("{% hits article days=7 %}", article)
    tag = "{% hits article days=7 %}"

    with round_trips(redis) as trips, django_assert_num_queries(1):
        assert show(f"{tag}|{tag}", article, request_) == "1|1"
    assert trips() == 1


def test_hit_of_the_page_is_included(article, request_):
    tag = "{% hits article days=7 %}"

    assert show(f"{tag}|{{% hit_count article %}}|{tag}", article, request_) == "21|322|22"


def test_unsaved_object(article):
    assert show("{% hits article days=7 %}", Article()) == ""


def test_page_is_shown_without_the_table(article, request_, caplog):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_hitcount_dailyhitslot RENAME TO away")
        try:
            assert show("a{% hits article days=7 %}b", article, request_) == "ab"
        finally:
            cursor.execute("ALTER TABLE away RENAME TO django_hitcount_dailyhitslot")
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("days", ["0", "-1", "3661", "'x'"])
def test_invalid_number_of_days(article, days):
    with pytest.raises(InvalidArgument):
        show(f"{{% hits article days={days} %}}", article)


def test_unknown_counter(article):
    with pytest.raises(InvalidArgument):
        show("{% hits article counter='likes' days=7 %}", article)


@pytest.mark.parametrize("day", [datetime.date.min, datetime.date.max])
@pytest.mark.parametrize("tag", ["hits", "visitors"])
def test_any_day_that_a_date_can_be(article, request_, settings, tag, day):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    article.day = day
    record_hit(article, request_)
    source = f"{{% {tag} article first_day=article.day last_day=article.day %}}"

    assert show(source, article, request_) == "0"
