from __future__ import annotations

import pickle

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F, Prefetch, QuerySet, Value
from django.db.models.query import ModelIterable, ValuesIterable
from django.test import RequestFactory

from django_hitcount.exceptions import HitCountError, InvalidArgument
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountQuerySet, with_hits, with_visitors
from django_hitcount.page_numbers import page_number
from django_hitcount.recording import record_hit
from tests.app.models import (
    Article,
    Cover,
    Essay,
    LiveQuerySet,
    Novel,
    OldPhoto,
    Page,
    Photo,
    Plain,
    Review,
    Small,
    Tag,
)
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)


def totals(queryset):
    return {obj.pk: obj.hits for obj in queryset}


@pytest.fixture
def articles(buffer):
    """Articles with 0, 1, 2, 3 hits, flushed or not."""
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(4))
    for n, article in enumerate(articles):
        for _ in range(n):
            record_hit(article)
        if n == 2:
            flush_hits()
    return articles


def expected(articles):
    return {article.pk: n for n, article in enumerate(articles)}


def test_objects_carry_exact_totals(articles):
    assert totals(Article.objects.with_hits()) == expected(articles)


def test_no_hits_is_0_in_sql_too(articles):
    flush_hits()

    found = Article.objects.with_hits().values_list("pk", "hits")
    assert dict(found) == expected(articles)


def test_filter_order_and_aggregate_use_the_tables(articles):
    flush_hits()
    ordered = Article.objects.with_hits().order_by("-hits")

    assert [article.hits for article in ordered] == [3, 2, 1, 0]
    assert ordered.filter(hits__gte=2).count() == 2
    assert ordered.first() == articles[3]
    assert ordered.get(hits=1) == articles[1]


def test_slices_chains_and_iterators_keep_the_totals(articles):
    queryset = Article.objects.with_hits().exclude(title="0").order_by("pk")

    assert totals(queryset[1:]) == {articles[2].pk: 2, articles[3].pk: 3}
    assert totals(queryset.all().iterator(chunk_size=2)) == totals(queryset)
    assert totals(queryset.defer("title")) == totals(queryset)


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_async_iteration_carries_totals(buffer):
    article = await Article.objects.acreate(title="Tea")
    await article.arecord_hit()

    assert [a.hits async for a in Article.objects.with_hits()] == [1]
    assert [a.hits async for a in Article.objects.with_hits().aiterator()] == [1]


def test_several_counters_side_by_side(buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article, amount=2)
    record_hit(article, counter="downloads", amount=3)

    found = Article.objects.with_hits().with_hits(counter="downloads", name="downloads").get()

    assert (found.hits, found.downloads) == (2, 3)


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
    flush_hits()
    queryset = type(obj).objects.with_hits()

    assert [*queryset.values_list("hits", flat=True)] == [7]
    assert totals(queryset) == {obj.pk: 7}


def test_a_queryset_of_any_model(buffer):
    plain = Plain.objects.create(name="x")
    record_hit(plain)

    assert totals(HitCountQuerySet(Plain).with_hits()) == {plain.pk: 1}


class TestOneObjectInSeveralRows:
    @pytest.fixture
    def article(self, buffer):
        article = Article.objects.create(title="Tea")
        for _ in range(2):
            Tag.objects.create().articles.add(article)
        record_hit(article, amount=3)
        flush_hits()
        record_hit(article, amount=4)
        return article

    def test_of_a_join(self, article):
        rows = Article.objects.filter(tags__pk__gt=0).with_hits()

        assert [row.hits for row in rows] == [7, 7]
        assert [row.hits for row in rows.iterator(chunk_size=1)] == [7, 7]

    def test_of_a_union(self, article):
        rows = Article.objects.with_hits()

        assert [row.hits for row in rows.union(rows, all=True)] == [7, 7]

    def test_of_a_prefetch(self, article):
        tags = Tag.objects.prefetch_related(
            Prefetch("articles", Article.objects.with_hits().with_hits(name="again"))
        )

        found = [(a.hits, a.again) for tag in tags for a in tag.articles.all()]
        assert found == [(7, 7), (7, 7)]

    def test_of_a_join_with_visitors(self, article, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        record_hit(article, RequestFactory(headers=BROWSER).get("/"))

        rows = Article.objects.filter(tags__pk__gt=0).with_visitors()
        assert [row.visitors for row in rows] == [1, 1]


TAKEN = [
    *("pk", "id", "title", "tags", "get_hits", "record_hit", "objects", "save", "DoesNotExist"),
    *("_state", "_meta", "__class__"),
]


class TestNames:
    @pytest.mark.parametrize("name", TAKEN)
    @pytest.mark.parametrize("method", ["with_hits", "with_visitors"])
    def test_that_objects_need_themselves_are_refused(self, method, name):
        with pytest.raises(ValueError, match=rf"'{name}'.*Article.*another name"):
            getattr(Article.objects.all(), method)(name=name)

    def test_of_a_column_is_refused(self):
        with pytest.raises(ValueError, match="'photo_id'"):
            Cover.objects.with_hits(name="photo_id")

    def test_of_a_plain_value_or_a_cached_property_may_be_taken(self, buffer):
        record_hit(Novel.published.create(), amount=2)

        found = Novel.published.with_hits(name="readings").with_hits(name="lazy_total").get()
        assert (found.readings, found.lazy_total) == (2, 2)


class TestLaterAnnotations:
    @pytest.fixture
    def article(self, buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article, amount=3)
        return article

    def test_of_the_same_name_win(self, article):
        queryset = Article.objects.with_hits().annotate(hits=Value("mine"))

        assert [found.hits for found in queryset] == ["mine"]

    def test_of_the_name_of_visitors_win(self, article, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        queryset = Article.objects.with_visitors().annotate(visitors=Value("mine"))

        assert [found.visitors for found in queryset] == ["mine"]

    def test_that_copy_the_total_are_exact_too(self, article):
        found = Article.objects.with_hits().annotate(copy=F("hits")).get()

        assert (found.hits, found.copy) == (3, 3)

    def test_of_another_counter_have_a_name_of_their_own(self, article):
        record_hit(article, counter="downloads", amount=5)

        found = Article.objects.with_hits().with_hits(counter="downloads").get()
        assert (found.hits, found.downloads_hits) == (3, 5)

    @pytest.mark.parametrize("model", [Article, Photo])
    def test_of_another_counter_may_take_the_name(self, buffer, model):
        obj = model.objects.create()
        record_hit(obj, counter="downloads", amount=5)

        assert with_hits(model.objects.all(), counter="downloads", name="hits").get().hits == 5


class TestPickle:
    @pytest.fixture
    def article(self, buffer, settings):
        settings.HITCOUNT = {
            **settings.HITCOUNT,
            "COUNTERS": {"views": {"visitors": True}},
        }
        article = Article.objects.create(title="Tea")
        record_hit(article, RequestFactory(headers=BROWSER).get("/"))
        return article

    def test_of_a_queryset(self, article):
        queryset = Article.objects.with_hits().with_visitors(days=2)

        again = pickle.loads(pickle.dumps(queryset)).all().get()
        assert (again.hits, again.visitors) == (1, 1)

    def test_of_a_query(self, article):
        """Django's documentation recommends to pickle the query."""
        queryset = Article.objects.all()
        queryset.query = pickle.loads(
            pickle.dumps(Article.objects.with_hits().with_visitors(days=2).query)
        )

        found = queryset.get()
        assert (found.hits, found.visitors) == (1, 1)

    def test_of_a_queryset_of_another_class(self, article):
        queryset = with_visitors(with_hits(QuerySet(Article)))
        queryset._iterable_class = Shouting
        queryset = with_hits(queryset)

        again = pickle.loads(pickle.dumps(queryset)).all().get()
        assert (again.hits, again.visitors, again.title) == (1, 1, "TEA")


class Shouting(ModelIterable):
    """Rows of another library."""

    def __iter__(self):
        for obj in super().__iter__():
            obj.title = obj.title.upper()
            yield obj


class Pairs(ValuesIterable):
    """Rows that are no objects."""

    def __iter__(self):
        yield from (tuple(row.items()) for row in super().__iter__())


class TestAnyQueryset:
    @pytest.fixture
    def essay(self, buffer):
        Essay.objects.create(live=False)
        essay = Essay.objects.create(live=True)
        record_hit(essay, amount=3)
        flush_hits()
        record_hit(essay, amount=4)
        return essay

    def test_of_another_class_gives_exact_totals(self, essay):
        queryset = with_hits(Essay.objects.all()).live().order_by("-hits")

        assert type(queryset) is LiveQuerySet
        assert [(found.pk, found.hits) for found in queryset] == [(essay.pk, 7)]
        assert queryset.values_list("hits", flat=True).count() == 1

    def test_of_a_model_without_the_mixin(self, buffer):
        plain = Plain.objects.create(name="x")
        record_hit(plain)

        assert with_hits(Plain.objects.all()).get().hits == 1

    def test_gives_visitors(self, essay, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        record_hit(essay, RequestFactory(headers=BROWSER).get("/"))

        assert with_visitors(Essay.objects.all()).get().visitors == 1

    @pytest.mark.parametrize("make", [QuerySet, HitCountQuerySet])
    def test_keeps_the_objects_that_another_library_makes(self, buffer, make):
        record_hit(Article.objects.create(title="Tea"))
        before, after = make(Article), with_hits(make(Article))
        before._iterable_class = Shouting

        assert [(a.title, a.hits) for a in with_hits(before)] == [("TEA", 1)]
        if make is HitCountQuerySet:
            after._iterable_class = Shouting
            assert [(a.title, a.hits) for a in after] == [("TEA", 1)]

    def test_leaves_rows_alone_that_are_no_objects(self, buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        flush_hits()
        rows = Article.objects.values("title")
        rows._iterable_class = Pairs

        assert [*with_hits(rows)] == [(("title", "Tea"), ("hits", 1))]

    @pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
    async def test_in_async_code(self, buffer):
        essay = await Essay.objects.acreate(live=True)
        await essay.arecord_hit()

        assert [found.hits async for found in with_hits(Essay.objects.all())] == [1]


class TestBuildingReadsNoSettings:
    @pytest.fixture
    def build(self):
        return lambda: Article.objects.with_hits(counter="viewz").with_visitors(
            counter="viewz", days=2
        )

    def test_wrong_settings_are_an_error_where_they_are_used(self, build, settings):
        settings.HITCOUNT = {"COUNTRES": {}}
        queryset = build()

        with pytest.raises(ImproperlyConfigured, match="COUNTRES"):
            list(queryset)

    def test_unknown_counter_is_an_error_where_it_is_used(self, build):
        queryset = build()

        with pytest.raises(InvalidArgument, match="'viewz'"):
            list(queryset)

    def test_visitors_that_are_not_counted_are_an_error_where_they_are_used(self, buffer):
        Article.objects.create(title="Tea")
        queryset = Article.objects.with_visitors()

        with pytest.raises(InvalidArgument, match="'views'"):
            list(queryset)

    def test_days_that_make_no_sense_are_an_error_at_once(self):
        with pytest.raises(InvalidArgument, match="0"):
            Article.objects.with_visitors(days=0)

    def test_counts_in_another_database_are_an_error_where_they_are_used(self, settings):
        settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
        queryset = Article.objects.with_hits()

        with pytest.raises(HitCountError, match=r"'default'.*'elsewhere'.*get_hits"):
            list(queryset)


@pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])
def test_totals_of_a_replica_are_not_taken_for_exact(buffer, settings):
    article = Article.objects.create(title="Tea")
    Article(pk=article.pk, title="Tea").save(using="elsewhere")
    settings.DATABASE_ROUTERS = ["tests.routers.Replica"]
    record_hit(article)

    (read,) = Article.objects.with_hits()
    assert read._state.db == "elsewhere"
    assert page_number(None, read, counter="views") == 1
