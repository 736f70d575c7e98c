from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from django_hitcount.exceptions import HitCountError, UnknownCounter
from django_hitcount.flushing import flush
from django_hitcount.models import HitCountQuerySet
from django_hitcount.recording import record_hit
from tests.app.models import Article, Cover, OldPhoto, Page, Photo, Plain, Review, Small

pytestmark = pytest.mark.django_db(transaction=True)


def totals(queryset):
    return {obj.pk: obj.hit_total for obj in queryset}


@pytest.fixture
def articles(buffer):
    """Articles with 0, 1, 2, 3 hits, flushed or not."""
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(4))
    for n, article in enumerate(articles):
        for _ in range(n):
            record_hit(article)
        if n == 2:
            flush()
    return articles


def expected(articles):
    return {article.pk: n for n, article in enumerate(articles)}


def test_objects_carry_exact_totals(articles):
    assert totals(Article.objects.with_hits()) == expected(articles)


def test_no_hits_is_0_in_sql_too(articles):
    flush()

    found = Article.objects.with_hits().values_list("pk", "hit_total")
    assert dict(found) == expected(articles)


def test_filter_order_and_aggregate_use_the_tables(articles):
    flush()
    ordered = Article.objects.with_hits().order_by("-hit_total")

    assert [article.hit_total for article in ordered] == [3, 2, 1, 0]
    assert ordered.filter(hit_total__gte=2).count() == 2
    assert ordered.first() == articles[3]
    assert ordered.get(hit_total=1) == articles[1]


def test_slices_chains_and_iterators_keep_the_totals(articles):
    queryset = Article.objects.with_hits().exclude(title="0").order_by("pk")

    assert totals(queryset[1:]) == {articles[2].pk: 2, articles[3].pk: 3}
    assert totals(queryset.all().iterator(chunk_size=2)) == totals(queryset)
    assert totals(queryset.defer("title")) == totals(queryset)


async def test_async_iteration_carries_totals(buffer):
    article = await Article.objects.acreate(title="Tea")
    await article.arecord_hit()

    assert [a.hit_total async for a in Article.objects.with_hits()] == [1]
    assert [a.hit_total async for a in Article.objects.with_hits().aiterator()] == [1]

    await sync_to_async(connections.close_all)()


def test_several_counters_side_by_side(buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article, amount=2)
    record_hit(article, counter="downloads", amount=3)

    found = Article.objects.with_hits().with_hits("downloads", name="downloads").get()

    assert (found.hit_total, found.downloads) == (2, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Small.objects.create(),
        lambda: Photo.objects.create(),
        lambda: Page.objects.create(path="/a/ü:%s/日本/A "),
        lambda: OldPhoto.objects.create(),
        lambda: Cover.objects.create(photo=Photo.objects.create()),
        lambda: Review.objects.create(title="child"),
    ],
)
def test_any_primary_key_is_found_in_sql(buffer, make):
    obj = make()
    record_hit(obj, amount=7)
    flush()
    queryset = type(obj).objects.with_hits()

    assert [*queryset.values_list("hit_total", flat=True)] == [7]
    assert totals(queryset) == {obj.pk: 7}


def test_a_queryset_of_any_model(buffer):
    plain = Plain.objects.create(name="x")
    record_hit(plain)

    assert totals(HitCountQuerySet(Plain).with_hits()) == {plain.pk: 1}


def test_unknown_counter_is_an_error_at_once():
    with pytest.raises(UnknownCounter, match="'viewz'"):
        Article.objects.with_hits("viewz")


def test_counts_in_another_database_are_an_error(settings):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]

    with pytest.raises(HitCountError, match=r"in 'default' and 'elsewhere'.*get_totals"):
        Article.objects.with_hits()
