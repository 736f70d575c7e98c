from __future__ import annotations

import datetime
from unittest import mock

import pytest
import time_machine
from asgiref.sync import sync_to_async
from django.db.models import Count, Prefetch, QuerySet, Value, Window
from django.db.models.functions import RowNumber

from django_hitcount.counters.keys import InvalidKey
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountMixin, HitCountQuerySet
from django_hitcount.rankings import apopular, atrending, popular, trending
from django_hitcount.recording import record_hit
from tests.app.keys import Hashed, Host, Legacy, Picture, Seat, Word
from tests.app.models import (
    Article,
    Cover,
    Essay,
    Featured,
    Novel,
    OldPhoto,
    Page,
    Photo,
    Plain,
    Review,
    Small,
    Tag,
    Ticket,
)

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = datetime.date(2026, 11, 22)

PLACE = Window(RowNumber(), order_by="pk")


def ago(days):
    return TODAY - datetime.timedelta(days=days)


def viewed(obj, hits, **options):
    record_hit(obj, amount=hits, **options)
    return obj


def ranked(objs):
    return [(obj, obj.hits) for obj in objs]


@pytest.fixture(autouse=True)
def noon():
    with time_machine.travel(datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC), tick=False):
        yield


@pytest.fixture
def articles(buffer):
    """Articles with 1, 2, 3, 4 hits and one without; some are compacted."""
    articles = Article.objects.bulk_create(
        Article(title=str(n), author="ann" if n % 2 else "bob") for n in range(5)
    )
    for n in (1, 2):
        viewed(articles[n], n)
    flush_hits()
    compact()
    viewed(articles[3], 3)
    viewed(articles[4], 4)
    flush_hits()
    return articles


class TestMostViewed:
    def test_are_those_with_the_most_hits(self, articles):
        _, one, two, three, four = articles

        assert ranked(popular(Article, 3)) == [(four, 4), (three, 3), (two, 2)]
        assert ranked(Article.objects.popular(9)) == [*((four, 4), (three, 3), (two, 2), (one, 1))]

    def test_are_two_queries(self, articles, django_assert_num_queries):
        with django_assert_num_queries(2):
            Article.objects.popular(3)
        with django_assert_num_queries(2):
            Article.objects.popular(3, days=30)
        with django_assert_num_queries(2):
            Article.objects.trending(3)

    def test_with_redis_wait_for_the_flush(self, redis_buffer):
        article = viewed(Article.objects.create(title="x"), 3)
        assert popular(Article, 1) == []

        flush_hits()
        assert ranked(popular(Article, 1)) == [(article, 3)]

    def test_of_another_counter(self, articles):
        viewed(articles[0], 7, counter="downloads")
        flush_hits()

        assert ranked(popular(Article, 3, counter="downloads")) == [(articles[0], 7)]

    def test_whose_hits_were_taken_back_are_left_out(self, articles):
        viewed(articles[4], -4)
        viewed(articles[3], -5)
        flush_hits()

        assert ranked(popular(Article, 9)) == [(articles[2], 2), (articles[1], 1)]

    def test_equal_ones_are_in_the_order_of_their_keys_as_text(self, buffer):
        pages = [viewed(Page.objects.create(path=path), 5) for path in ("a", "é", "10", "9", "B")]
        flush_hits()

        assert popular(Page, 9) == sorted(pages, key=lambda page: page.path)

    def test_keep_the_day_of_the_site_after_midnight(self, buffer):
        """TIME_ZONE is one hour ahead of UTC."""
        with time_machine.travel("2026-11-21T23:30:00+00:00", tick=False):
            article = viewed(Article.objects.create(title="x"), 1)
            flush_hits()
            assert popular(Article, 1, first_day=TODAY, last_day=TODAY) == [article]
        with time_machine.travel("2026-11-22T23:30:00+00:00", tick=False):
            assert popular(Article, 1, days=1) == []
            assert popular(Article, 1, days=2) == [article]

    @pytest.mark.parametrize(
        ("period", "expected"),
        [
            ({"days": 1}, [1]),
            ({"days": 3}, [2, 1]),
            ({"first_day": ago(2), "last_day": ago(2)}, [2]),
            ({"first_day": ago(9), "last_day": ago(1)}, [9, 2]),
            ({"days": 3660}, [9, 2, 1]),
        ],
    )
    def test_of_some_days(self, buffer, period, expected):
        for days, hits in ((0, 1), (2, 2), (9, 9)):
            viewed(Article.objects.create(title="x"), hits, at=ago(days))
        flush_hits()

        found = Article.objects.popular(9, **period)
        assert [article.hits for article in found] == expected


class TestTrending:
    @pytest.fixture
    def articles(self, buffer):
        """Articles with 4 hits today, 12 three days ago, and very many 40 days ago."""
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
        for article, days, hits in zip(articles, (0, 3, 40), (4, 12, 10**6), strict=True):
            viewed(article, hits, at=ago(days))
        flush_hits()
        return articles

    def test_are_those_whose_hits_are_new(self, articles):
        found = [(article, article.trend_score) for article in Article.objects.trending(9)]

        assert found == [(articles[1], 6.0), (articles[0], 4.0)]

    def test_a_short_half_life_favors_what_is_newer(self, articles):
        found = trending(Article, 9, half_life_days=1)

        assert [article.trend_score for article in found] == [4.0, 1.5]

    def test_a_long_half_life_reaches_far_back(self, articles):
        found = trending(Article, 1, half_life_days=40)

        assert [(article, article.trend_score) for article in found] == [(articles[2], 500_000.0)]

    def test_of_another_counter(self, articles):
        viewed(articles[0], 7, counter="downloads")
        flush_hits()

        assert trending(Article, 9, counter="downloads") == [articles[0]]


class TestQueryset:
    def test_is_filtered(self, articles):
        ann, bob = (Article.objects.filter(author=name) for name in ("ann", "bob"))

        assert ann.popular(9) == [articles[3], articles[1]]
        assert bob.exclude(title="4").popular(1) == [articles[2]]
        assert Article.objects.none().popular(1) == []

    def test_may_have_any_order(self, articles):
        assert Article.objects.order_by("pk").popular(2) == articles[4:2:-1]
        assert Article.objects.order_by("?").reverse().popular(1) == [articles[4]]

    def test_is_not_sorted_by_the_database(self, articles, django_assert_num_queries):
        with django_assert_num_queries(2) as queries:
            Article.objects.order_by("title").popular(1)

        assert "title" in queries[1]["sql"]
        assert "ORDER BY" not in queries[1]["sql"]

    def test_keeps_what_it_says_about_objects(self, articles, django_assert_num_queries):
        tag = Tag.objects.create()
        tag.articles.add(articles[4])
        (found,) = (
            Article.objects.only("title")
            .annotate(tag_count=Count("tags"))
            .prefetch_related(Prefetch("tags", to_attr="found_tags"))
            .with_hits()
            .popular(1)
        )

        assert (found.tag_count, found.found_tags, found.hits) == (1, [tag], 4)
        assert found.get_deferred_fields() == {"author"}

    def test_with_related_objects(self, buffer, django_assert_num_queries):
        cover = viewed(Cover.objects.create(photo=Photo.objects.create()), 1)
        flush_hits()
        (found,) = Cover.objects.select_related("photo").popular(1)

        with django_assert_num_queries(0):
            assert found.photo == cover.photo

    def test_that_returns_an_object_twice_lists_it_once(self, articles):
        for _ in range(2):
            Tag.objects.create().articles.set(articles[3:])

        assert Article.objects.filter(tags__pk__gt=0).popular(9) == articles[:2:-1]
        assert Article.objects.filter(tags__pk__gt=0).distinct().popular(1) == [articles[4]]

    def test_grouped(self, articles):
        Tag.objects.create().articles.set(articles[1:3])

        tagged = Article.objects.annotate(tag_count=Count("tags")).filter(tag_count=1)
        assert tagged.popular(9) == [articles[2], articles[1]]

    def test_of_a_related_manager(self, articles):
        tag = Tag.objects.create()
        tag.articles.set(articles[1:3])

        assert tag.articles.popular(9) == [articles[2], articles[1]]
        assert popular(tag.articles, 1) == [articles[2]]

    @pytest.mark.parametrize(
        ("make", "why"),
        [
            (lambda rows: rows[:5], "sliced"),
            (lambda rows: rows.union(rows), "union"),
            (lambda rows: rows.values("pk"), "values"),
            (lambda rows: rows.values_list("pk", flat=True), "values"),
            (lambda rows: rows.distinct("author"), "distinct"),
            (lambda rows: rows.annotate(place=PLACE), "window function"),
            (lambda rows: rows.alias(place=PLACE).filter(place__lt=3), "window function"),
        ],
    )
    def test_that_cannot_be_ranked_is_refused(self, db, make, why):
        with pytest.raises(InvalidArgument, match=rf"queryset of app.Article.*{why}"):
            popular(make(Article.objects.order_by("pk")), 1)


class TestModel:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: Small.objects.create(),
            lambda: Photo.objects.create(),
            lambda: OldPhoto.objects.create(),
            lambda: Page.objects.create(path="/a/ü:%s/日本/A "),
            lambda: Cover.objects.create(photo=Photo.objects.create()),
            lambda: Hashed.objects.create(pk=7),
            lambda: Picture.objects.create(pk="0190d1a6-7b1c-7000-8000-00000000000a"),
            lambda: Legacy.objects.create(pk="a b"),
            lambda: Word.objects.create(pk="Straße"),
            lambda: Ticket.objects.create(name="x"),
            lambda: Plain.objects.create(name="x"),
        ],
    )
    def test_with_any_primary_key(self, buffer, make):
        obj = make()
        obj = type(obj)._base_manager.get()
        viewed(obj, 3)
        flush_hits()

        for _ in range(2):
            (found,) = popular(type(obj), 9)
            assert (type(found), str(found.pk), found.hits) == (type(obj), str(obj.pk), 3)
            compact()
        assert len(trending(QuerySet(type(obj)), 9)) == 1

    def test_uses_its_default_manager(self, buffer):
        viewed(Essay.objects.create(live=False), 9)
        essay = viewed(Essay.objects.create(live=True), 1)
        flush_hits()

        assert popular(Essay, 9) == [essay]
        assert len(popular(Essay.everything, 9)) == 2

    def test_has_methods_on_each_manager_of_the_package(self, buffer):
        novel = viewed(Novel.published.create(live=True), 1)
        flush_hits()

        assert Novel.published.live().popular(1) == Novel.published.trending(1) == [novel]
        assert HitCountQuerySet(Plain).popular(1) == []

    def test_that_is_a_child_has_the_hits_of_its_parent(self, buffer):
        article = viewed(Article.objects.create(title="parent"), 2)
        review = viewed(Review.objects.create(title="child"), 3)
        flush_hits()

        (found,) = popular(Review, 9)
        assert (type(found), found, found.hits) == (Review, review, 3)
        assert popular(Featured, 9) == [Featured(pk=review.pk), Featured(pk=article.pk)]
        assert popular(Article, 9) == [Article(pk=review.pk), article]

    def test_deleted_objects_are_left_out(self, articles):
        Article.objects.filter(pk=articles[4].pk)._raw_delete("default")

        assert popular(Article, 1) == [articles[3]]


class TestSeveral:
    def test_models_are_in_one_list(self, articles):
        page = viewed(Page.objects.create(path="x"), 4)
        photo = viewed(Photo.objects.create(), 3)
        flush_hits()

        found = ranked(popular([Article, Page.objects.all(), Photo], 5))
        assert {*found[:2]} == {(articles[4], 4), (page, 4)}
        assert {*found[2:4]} == {(articles[3], 3), (photo, 3)}
        assert found[4] == (articles[2], 2)

    def test_models_with_equal_hits_are_in_the_order_of_content_types(self, buffer):
        objs = [viewed(make(), 1) for make in (Photo.objects.create, Small.objects.create)]
        flush_hits()

        assert popular([Small, Photo], 2) == sorted(objs, key=content_type_id_of)

    def test_querysets_with_one_object_list_it_once(self, articles):
        review = viewed(Review.objects.create(title="child"), 9)
        flush_hits()
        ann = Article.objects.filter(author="ann")

        found = popular([Review, Article, ann, Featured], 3)
        assert found == [review, articles[4], articles[3]]
        assert [type(obj) for obj in found] == [Review, Article, Article]

    def test_cost_two_queries_each(self, articles, django_assert_num_queries):
        viewed(Page.objects.create(path="x"), 4)
        flush_hits()
        popular(Page, 1)  # Looks the content type up.

        with django_assert_num_queries(4):
            popular([Article, Page], 2)


class TestInvalid:
    @pytest.mark.parametrize("limit", [0, -1, 2.0, "3", None, True, 10**30])
    def test_limit(self, db, limit):
        for rank in (popular, trending):
            with pytest.raises(InvalidArgument, match="limit"):
                rank(Article, limit)

    def test_the_largest_limit(self, articles):
        for rank in (popular, trending):
            assert rank(Article, 1_000_000) == articles[:0:-1]
            with pytest.raises(InvalidArgument, match=r"1000001\. Pass .* to 1,000,000"):
                rank(Article, 1_000_001)

    @pytest.mark.parametrize(
        "source", [[], [[]], None, "app.Article", 3, [Article, None], HitCountMixin, object]
    )
    def test_source(self, db, source):
        for rank in (popular, trending):
            with pytest.raises(InvalidArgument, match=r"Invalid source.*Pass"):
                rank(source, 1)

    @pytest.mark.parametrize(("rank", "name"), [(popular, "hits"), (trending, "trend_score")])
    def test_attribute_that_would_be_overwritten(self, articles, rank, name):
        """Saving an object would write the rank into a field of that name."""
        with pytest.raises(InvalidArgument, match=f"'{name}' is part of the queryset.*Rename"):
            rank(Article.objects.annotate(**{name: Value(5)}), 1)
        with (
            mock.patch.object(Article, name, property(lambda self: 5), create=True),
            pytest.raises(InvalidArgument, match=rf"'{name}' is part of app\.Article.*Rename"),
        ):
            rank(Article, 1)
        with mock.patch.object(Article, name, None, create=True):  # A default.
            assert rank(Article, 1) == [articles[-1]]

    @pytest.mark.parametrize("half_life", [0, -1, "3", None, 367])
    def test_half_life(self, db, half_life):
        with pytest.raises(InvalidArgument, match="half-life"):
            Article.objects.trending(1, half_life_days=half_life)

    @pytest.mark.parametrize(
        "period",
        [
            {"days": 0},
            {"days": 3661},
            {"days": "7"},
            {"first_day": TODAY, "last_day": ago(1)},
            {"first_day": "2026-11-22", "last_day": TODAY},
        ],
    )
    def test_days(self, db, period):
        with pytest.raises(InvalidArgument, match="Invalid"):
            popular(Article, 1, **period)

    @pytest.mark.parametrize(
        "period",
        [{"last_day": TODAY}, {"days": 7, "last_day": TODAY}, {"days": 7, "first_day": TODAY}],
    )
    def test_days_that_are_no_range(self, db, period):
        with pytest.raises(InvalidArgument, match=r"Invalid range: .*Pass (days, or )?first_day"):
            popular(Article, 1, **period)

    def test_counter(self, db):
        for rank in (popular, trending):
            with pytest.raises(InvalidArgument, match="'viewz'"):
                rank(Article, 1, counter="viewz")

    @pytest.mark.parametrize("model", [Host, Seat])
    def test_primary_key(self, db, model):
        with pytest.raises(InvalidKey, match=model.__name__):
            popular(model, 1)


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_twins_are_async(buffer):
    article = await Article.objects.acreate(title="Tea")
    await article.arecord_hit(amount=2)
    await sync_to_async(flush_hits)()

    assert await apopular(Article, 1) == await atrending(Article, 1) == [article]
    assert await Article.objects.apopular(1, days=1) == [article]
    assert [a.trend_score for a in await Article.objects.filter(pk=article.pk).atrending(1)] == [2]


@pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])
class TestOtherDatabases:
    def test_counts_may_be_elsewhere(self, buffer, settings):
        settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
        articles = [viewed(Article.objects.create(title=str(n)), n + 1) for n in range(3)]
        flush_hits()

        assert popular(Article, 2) == [articles[2], articles[1]]
        assert Article.objects.filter(title="0").trending(1) == [articles[0]]

    def test_objects_are_read_where_the_queryset_says(self, articles):
        Article(pk=articles[1].pk, title="elsewhere").save(using="elsewhere")

        (found,) = Article.objects.using("elsewhere").popular(9)
        assert (found.title, found.hits) == ("elsewhere", 1)
