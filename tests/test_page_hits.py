"""A page counts once for each object and counter, however many tags it has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import RequestFactory

from django_hitcount.counters.days import day_of
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.reading import get_hits
from django_hitcount.recording import Hit, record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.redis_server import sends

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "OPTIONS"])
def test_only_get_counts(buffer, article, method):
    record_hit(article)
    request = RequestFactory(headers=BROWSER).generic(method, "/")

    assert record_hit(article, request) == Hit(False, "method", 1)
    assert article.hits == 1


def test_page_counts_once_per_request_and_object(buffer, article):
    request = RequestFactory(headers=BROWSER).get("/")
    other = Article.objects.create(title="Coffee")

    totals = [
        record_hit(obj, request, once_per_request=True).total for obj in (article, article, other)
    ]

    assert totals == [1, 1, 1]
    assert get_hits([article, other]) == {article: 1, other: 1}


def test_once_per_request_takes_the_other_arguments(buffer, article):
    request, yesterday = RequestFactory(headers=BROWSER).get("/"), day_of() - timedelta(days=1)
    refused = record_hit(
        article,
        request,
        once_per_request=True,
        counter="downloads",
        refusals=[lambda context: True],
    )
    hit = record_hit(article, request, once_per_request=True, amount=3, at=yesterday)

    assert refused == Hit(False, "caller", 0)
    assert hit == Hit(True, None, 3)
    assert article.get_hits(first_day=yesterday, last_day=yesterday) == 3
    with pytest.raises(InvalidArgument, match="Invalid amount: 0"):
        record_hit(
            article, RequestFactory(headers=BROWSER).get("/"), once_per_request=True, amount=0
        )


def test_the_total_is_left_on_the_object(buffer, article, django_assert_num_queries):
    hit = record_hit(article, RequestFactory(headers=BROWSER).get("/"))

    with sends() as sent, django_assert_num_queries(0):
        assert article.hits == hit.total == 1
    assert sent() == 0


def test_not_while_it_waits_for_a_commit(buffer, article):
    """It would stay there after a rollback."""
    with transaction.atomic():
        hit = record_hit(article)
        assert (hit.total, article.hits) == (1, 0)
        transaction.set_rollback(True)

    assert article.hits == 0


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_async_code_may_read_it_then(buffer):
    article = await Article.objects.acreate(title="Tea")
    await article.arecord_hit()

    assert article.hits == 1


def test_page_hit_after_an_explicit_one_counts_nothing_more(buffer, article):
    request = RequestFactory(headers=BROWSER).get("/")
    record_hit(article, request)

    assert record_hit(article, request, once_per_request=True).total == 1
    assert article.hits == 1


def test_counters_of_one_page_are_apart(buffer, article):
    request = RequestFactory(headers=BROWSER).get("/")
    record_hit(article, request, once_per_request=True)
    record_hit(article, request, once_per_request=True, counter="downloads")

    assert get_hits(article, counter="downloads") == article.hits == 1
