"""Hits by day, week and month equal a plain sum of what was recorded."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount import series
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyModelHits
from tests.app.models import Article, Featured, Page

FIRST, LAST = datetime.date(2026, 2, 26), datetime.date(2026, 3, 3)
DAYS = [FIRST + datetime.timedelta(days=n) for n in range(6)]

pytestmark = pytest.mark.django_db(transaction=True)


def put(obj, day, hits, *, slot=1, counter="views"):
    """Write hits as a flush does, or, in slot 0, as a compaction does."""
    key = counter_key(obj, counter=counter)
    slots.add_daily({(key, day): hits}, slot=slot, using="default")
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
    found = series.hits_by_day(site[0], FIRST, LAST)

    assert [*found.items()] == [*zip(DAYS, [21, 0, 300, 0, 0, 0], strict=True)]
    assert site[0].hits_by_day(FIRST, LAST) == found


@pytest.mark.parametrize("source", [Article, Featured, Article.objects, Article.objects.all()])
def test_model(site, source, django_assert_num_queries):
    with django_assert_num_queries(1):
        found = series.hits_by_day(source, FIRST, LAST)

    assert [*found] == DAYS
    assert without_zeros(found) == OF_ARTICLES


def test_whole_site(site, django_assert_num_queries):
    with django_assert_num_queries(1):
        found = series.hits_by_day(None, FIRST, LAST)

    assert without_zeros(found) == {**OF_ARTICLES, DAYS[2]: 7_604_300}


def test_list(site):
    found = series.hits_by_day([Article, Page.objects.filter(path="a:b")], FIRST, LAST)

    assert found == series.hits_by_day(None, FIRST, LAST)
