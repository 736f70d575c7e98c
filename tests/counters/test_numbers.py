"""``article.hits`` of an object that was read with its total."""

from __future__ import annotations

import copy
import pickle

import pytest
from django.core.cache import cache
from django.test import RequestFactory

from django_hitcount.counters import numbers
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import with_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article, Essay
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
    record_hits(articles, amount=3)
    flush_hits()
    record_hits(articles, amount=4)
    return articles


@pytest.fixture
def found(articles) -> Article:
    """An object that was read with a total that has changed since."""
    found = Article.objects.with_hits().first()
    record_hit(articles[0])
    return found


def test_loop_asks_once(articles, django_assert_num_queries):
    listed = list(Article.objects.with_hits(counter="views", name="seen"))

    with django_assert_num_queries(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_hitcount.models.read_numbers", None)
        assert [article.hits for article in listed] == [7, 7, 7]


def test_so_does_one_over_a_queryset_of_another_class(buffer):
    Essay.objects.create(live=True).record_hit()

    found = with_hits(Essay.objects.all()).get()
    record_hit(Essay.objects.get())
    assert (found.hits, Essay.objects.get().hits) == (1, 2)


def test_total_is_as_old_as_the_object(found):
    assert found.hits == 7


def test_of_another_counter_is_not_taken_for_views(articles):
    assert Article.objects.with_hits(counter="downloads").first().hits == 7


def test_is_read_anew_after_a_while(found, monkeypatch):
    later = numbers.monotonic() + numbers.FRESH_SECONDS
    monkeypatch.setattr(numbers, "monotonic", lambda: later + 1)

    assert found.hits == 8


@pytest.mark.parametrize("refresh", [{}, {"fields": None}, {"using": "default"}])
def test_is_read_anew_after_refresh_from_db(found, refresh):
    found.refresh_from_db(**refresh)

    assert found.hits == 8


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_is_read_anew_after_arefresh_from_db(buffer):
    article = await Article.objects.acreate(title="Tea")
    found = await Article.objects.with_hits().aget()
    await article.arecord_hit()
    assert found.hits == 0

    await found.arefresh_from_db()
    assert (
        numbers.numbers_of(found).recall(numbers.Number(counter_key(found, counter="views")))
        is None
    )


def test_is_kept_when_a_deferred_field_is_read(articles):
    found = Article.objects.with_hits().defer("author").first()
    record_hit(articles[0])

    assert found.author == ""
    assert found.hits == 7


@pytest.mark.parametrize(
    "hit",
    [
        lambda found: found.record_hit(),
        lambda found: found.record_hit(RequestFactory(headers=BROWSER).get("/")),
        lambda found: record_hits([found]),
    ],
)
def test_is_read_anew_after_a_hit_on_the_object(found, hit):
    hit(found)

    assert found.hits == 9


def test_is_kept_after_a_hit_on_another_counter(found):
    found.record_hit(counter="downloads")

    assert found.hits == 7


def test_is_read_anew_when_it_comes_from_a_cache(found):
    cache.set("article", found)

    for stored in (cache.get("article"), pickle.loads(pickle.dumps(found))):
        assert stored.hits == 8
    assert copy.copy(found).hits == 7


def test_of_tables_that_lag_behind_is_not_kept(articles, redis_buffer, monkeypatch):
    """The exact total cannot be read now: the figure of the tables is shown, and not trusted."""
    monkeypatch.setattr("django_hitcount.prefetching.read_numbers", lambda *args, **kwargs: {})
    found = Article.objects.with_hits().first()

    assert (
        numbers.numbers_of(found).recall(numbers.Number(counter_key(found, counter="views")))
        is None
    )


def test_copy_with_a_key_of_its_own_begins_at_zero(found):
    """The object is copied as in Django's documentation."""
    found.pk = None
    found._state.adding = True
    found.save()

    assert found.hits == 0


def test_another_thread_may_change_what_is_being_forgotten():
    fresh = numbers.FreshNumbers()
    keys = [CounterKey(1, str(pk), "views") for pk in range(4)]
    fresh.remember(dict.fromkeys(keys[:3], 5))

    def forget_meanwhile(number: numbers.Number) -> bool:
        fresh.pop(keys[1], None)
        fresh.remember({keys[3]: 7})
        return True

    fresh.forget(forget_meanwhile)

    assert [fresh.recall(key) for key in keys] == [None, None, None, 7]
