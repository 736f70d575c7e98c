"""A page counts once for each object and counter, however many tags it has."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from django_hitcount.recording import Hit, record_hit
from django_hitcount.totals import get_hits
from tests.app.models import Article
from tests.browsers import BROWSER

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
