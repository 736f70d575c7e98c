"""HitCountField costs one read for a list, whoever has forgotten to read the numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Prefetch
from django.test.utils import CaptureQueriesContext
from rest_framework import serializers

from django_hitcount import outages
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import with_hits
from django_hitcount.numbers import read_numbers
from django_hitcount.prefetching import prefetch_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.rest_framework import HitCountField
from tests.app.models import Article, Cover, Page, Photo, Plain, Reply, Section, Small, Story
from tests.cache_alias import NOWHERE, change_alias
from tests.redis_server import sends
from tests.rest_framework.api import (
    ArticleSerializer,
    SectionSerializer,
    StorySerializer,
    WeekSerializer,
    listed,
    shown,
)
from tests.visiting import DAY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(buffer) -> list[Article]:
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
    for n in range(3):
        record_hits(articles[n:])
    record_hits(articles[:5], counter="downloads", amount=7)
    get_hits(articles)
    get_hits(articles, counter="downloads")
    return articles


@pytest.fixture
def costs(buffer):
    """Returns what a call returns, the queries that it makes, and how often it asks Redis."""

    def count(function, *args):
        with CaptureQueriesContext(connection) as queries, sends() as trips:
            found = function(*args)
        return found, len(queries), trips()

    return count


@pytest.fixture
def read(buffer):
    """What reading totals that Redis knows costs: queries and round trips, for each counter."""
    return (0, 1) if buffer.keeps_hits else (1, 0)


HITS = [1, 2] + [3] * 98


def test_a_page_of_an_api_that_forgot_the_hits(articles, costs, read):
    """Its own queries are the count and the objects."""
    found, queries, trips = costs(listed)

    assert [article["hits"] for article in found] == HITS
    assert [article["downloads"] for article in found] == [7] * 5 + [0] * 95
    assert (queries - 2, trips) == read


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (lambda objs: objs, 1),
        (list, 0),
        (tuple, 0),
        (lambda objs: Paginator(objs, 100).page(1), 1),
        (lambda objs: Paginator([*objs], 100).page(1), 0),
        (lambda objs: Article.objects.raw(str(objs.query)), 1),
        (lambda objs: {obj.pk: obj for obj in objs}.values(), 0),
        (lambda objs: dict.fromkeys(objs).keys(), 0),
    ],
    ids=["queryset", "list", "tuple", "page", "page of a list", "raw", "values", "set"],
)
def test_any_list_is_one_read(articles, costs, read, make, own):
    """``own``: the queries of the list itself."""
    objs = make(Article.objects.order_by("pk"))
    found, queries, trips = costs(shown, objs)

    assert [article["hits"] for article in found] == HITS
    assert (queries - own, trips) == read


def test_hits_that_redis_does_not_know_are_one_query_more(articles, redis, costs):
    """Without Redis, they are that query."""
    flush_hits()
    redis.flushall()
    found, queries, _ = costs(shown, Article.objects.order_by("pk"))

    assert [article["hits"] for article in found] == HITS
    assert queries == 1 + 1


@pytest.mark.parametrize(
    "prepare",
    [
        lambda: with_hits(with_hits(Article.objects.order_by("pk")), counter="downloads"),
        lambda: prefetched(Article.objects.order_by("pk")),
    ],
    ids=["with_hits", "prefetch_hits"],
)
def test_numbers_that_are_there_are_not_read_again(articles, costs, prepare):
    objs = prepare()
    assert len(objs) == 100
    found, queries, trips = costs(shown, objs)

    assert [article["hits"] for article in found] == HITS
    assert [article["downloads"] for article in found] == [7] * 5 + [0] * 95
    assert (queries, trips) == (0, 0)


def prefetched(queryset):
    prefetch_hits(queryset, counters=["views", "downloads"])
    return queryset


def test_recorded_hit_is_not_read_again(articles, costs):
    article = Article.objects.get(pk=articles[0].pk)
    record_hit(article)
    record_hit(article, counter="downloads")
    found, queries, trips = costs(lambda: ArticleSerializer(article).data)

    assert (found["hits"], found["downloads"]) == (2, 8)
    assert (queries, trips) == (0, 0)


def test_one_object(articles, costs, read):
    article = Article.objects.get(pk=articles[1].pk)
    found, queries, trips = costs(lambda: ArticleSerializer(article).data)

    assert found == {"id": article.pk, "title": "1", "hits": 2, "downloads": 7}
    assert (queries, trips) == read


def test_hits_of_some_days(articles, costs, buffer):
    """They are in the tables, so with Redis they are a query, too."""
    record_hits(articles, at=DAY, amount=100)
    objs = Article.objects.order_by("pk")
    found, queries, trips = costs(shown, objs, WeekSerializer)

    assert [article["hits"] for article in found] == [number + 100 for number in HITS]
    assert [article["week"] for article in found] == HITS
    assert (queries - 1, trips) == ((1, 1) if buffer.keeps_hits else (2, 0))


def test_each_number_of_days_is_a_query(articles, costs, buffer):
    class Serializer(WeekSerializer):
        month = HitCountField(days=30)

        class Meta(WeekSerializer.Meta):
            fields = ["hits", "week", "month"]

    found, queries, trips = costs(shown, Article.objects.order_by("pk"), Serializer)

    assert [article["month"] for article in found] == HITS
    assert (queries - 1, trips) == ((2, 1) if buffer.keeps_hits else (3, 0))


@pytest.mark.parametrize("model", [Article, Small, Photo, Page], ids=lambda model: model.__name__)
def test_keys_of_all_types(buffer, model):
    objs = [model.objects.create(**({"path": f"/{n}/"} if model is Page else {})) for n in range(3)]
    for n in range(3):
        record_hits(objs[n:])
    serializer = serializer_of(model)

    assert shown(objs, serializer) == [{"hits": 1}, {"hits": 2}, {"hits": 3}]
    again = [model.objects.get(pk=obj.pk) for obj in objs]
    assert shown(again, serializer) == [{"hits": 1}, {"hits": 2}, {"hits": 3}]


def serializer_of(counted, **options):
    class Serializer(serializers.ModelSerializer):
        hits = HitCountField(**options)

        class Meta:
            model = counted
            fields = ["hits"]

    return Serializer


def test_key_that_is_a_relation_and_model_without_the_mixin(buffer):
    cover = Cover.objects.create(photo=Photo.objects.create())
    plain = Plain.objects.create(name="a")
    record_hits([cover, plain, plain])

    assert shown([cover], serializer_of(Cover)) == [{"hits": 1}]
    assert shown(Plain.objects.all(), serializer_of(Plain)) == [{"hits": 2}]


def test_same_object_twice(articles, costs, read):
    objs = [Article.objects.get(pk=articles[1].pk) for _ in range(2)]
    found, queries, trips = costs(shown, [objs[0], *objs])

    assert [article["hits"] for article in found] == [2, 2, 2]
    assert (queries, trips) == read


@pytest.mark.parametrize("make", [dict, SimpleNamespace], ids=["dict", "attributes"])
def test_lists_that_belong_to_no_object(articles, costs, read, make):
    class Feed(serializers.Serializer):
        top = ArticleSerializer(many=True)
        newest = ArticleSerializer()

    objs = [*Article.objects.order_by("pk")]
    found, queries, trips = costs(lambda: Feed(make(top=objs, newest=objs[-1])).data)

    assert [article["hits"] for article in found["top"]] == HITS
    assert found["newest"]["hits"] == 3
    assert (queries, trips) == read


def test_rows_show_what_they_have(articles):
    flush_hits()
    rows = with_hits(Article.objects.order_by("pk")).values("hits")[:3]

    assert shown(rows, serializer_of(Article)) == [{"hits": 1}, {"hits": 2}, {"hits": 3}]
    with pytest.raises(UnsavedObject, match="'title'"):
        shown(Article.objects.values("title"), serializer_of(Article))


class TestSource:
    """The hits are those of another object than the one that is shown."""

    @pytest.fixture
    def replies(self, buffer) -> list[Reply]:
        stories = [Story.objects.create(section=Section.objects.create()) for _ in range(3)]
        replies = [Reply.objects.create(story=story) for story in stories]
        record_hits(stories, amount=7)
        record_hits(replies)
        get_hits(stories)
        get_hits(replies)
        return replies

    @pytest.mark.parametrize("source", ["story.hits", "story.anything", "story"])
    def test_one_read(self, replies, costs, read, source):
        class Serializer(serializers.Serializer):
            of_story = HitCountField(source=source)
            own = HitCountField(source="hits")

        objs = [*Reply.objects.select_related("story")]
        found, queries, trips = costs(shown, objs, Serializer)

        assert found == [{"of_story": 7, "own": 1}] * 3
        assert (queries, trips) == read

    @pytest.mark.parametrize("make", [dict, SimpleNamespace], ids=["dict", "attributes"])
    def test_row_that_has_the_object(self, replies, costs, read, make):
        class Serializer(serializers.Serializer):
            reply = HitCountField()
            rank = serializers.IntegerField()

        rows = [make(reply=reply, rank=n) for n, reply in enumerate(Reply.objects.all())]
        found, queries, trips = costs(shown, rows, Serializer)

        assert found == [{"reply": 1, "rank": n} for n in range(3)]
        assert (queries, trips) == read

    def test_relation_that_leads_nowhere(self, buffer):
        class Serializer(serializers.Serializer):
            cover = HitCountField()
            views = HitCountField(source="cover.hits")

        assert Serializer(Photo.objects.create()).data == {"cover": None, "views": None}

    def test_relation_that_was_not_joined_is_read_once(self, replies, monkeypatch):
        """And not again for each row that follows."""

        class Serializer(serializers.Serializer):
            story = serializer_of(Story)()

        sizes = []

        def count(numbers, **options):
            sizes.append(len(numbers))
            return read_numbers(numbers, **options)

        monkeypatch.setattr("django_hitcount.prefetching.read_numbers", count)

        assert shown(Reply.objects.all(), Serializer) == [{"story": {"hits": 7}}] * 3
        assert sizes == [1, 1, 1]


class TestNested:
    """The list is within other objects."""

    @pytest.fixture
    def sections(self, buffer) -> list[Section]:
        sections = [Section.objects.create(name=str(n)) for n in range(3)]
        stories = [Story.objects.create(section=section) for section in sections for _ in range(4)]
        replies = [Reply.objects.create(story=story) for story in stories for _ in range(2)]
        record_hits(stories, amount=2)
        record_hits(replies, amount=5)
        get_hits(stories)
        get_hits(replies)
        return sections

    EXPECTED = [{"hits": 2, "replies": [{"hits": 5}] * 2}] * 4

    @pytest.mark.parametrize(
        "lookups",
        [
            ["stories__replies"],
            [Prefetch("stories", Story.objects.prefetch_related("replies"))],
        ],
        ids=["names", "querysets"],
    )
    def test_prefetched_lists_are_one_read_for_each_level(self, sections, costs, read, lookups):
        objs = Section.objects.prefetch_related(*lookups)
        found, queries, trips = costs(shown, objs, SectionSerializer)

        assert [section["stories"] for section in found] == [self.EXPECTED] * 3
        assert queries == 3 + 2 * read[0]
        assert trips == 2 * read[1]

    def test_prefetched_with_hits_are_not_read_again(self, sections, costs, buffer):
        replies = Prefetch("replies", Reply.objects.with_hits())
        stories = Prefetch("stories", Story.objects.with_hits().prefetch_related(replies))
        objs = [*Section.objects.prefetch_related(stories)]
        found, queries, trips = costs(shown, objs, SectionSerializer)

        assert [section["stories"] for section in found] == [self.EXPECTED] * 3
        assert (queries, trips) == (0, 0)

    def test_list_that_was_not_prefetched_is_right(self, sections):
        found = shown(Section.objects.all(), SectionSerializer)

        assert [section["stories"] for section in found] == [self.EXPECTED] * 3

    def test_list_of_one_object(self, sections, costs, read):
        section = Section.objects.prefetch_related("stories__replies").first()
        found, queries, trips = costs(lambda: SectionSerializer(section).data)

        assert found["stories"] == self.EXPECTED
        assert (queries, trips) == (2 * read[0], 2 * read[1])

    def test_list_in_an_attribute(self, sections, costs, read):
        class Serializer(serializers.Serializer):
            some = serializer_of(Story)(many=True)

        objs = [*Section.objects.prefetch_related(Prefetch("stories", to_attr="some"))]
        found, queries, trips = costs(shown, objs, Serializer)

        assert found == [{"some": [{"hits": 2}] * 4}] * 3
        assert (queries, trips) == read

    @pytest.mark.parametrize("is_joined", [True, False], ids=["select_related", "without"])
    def test_foreign_keys(self, sections, costs, read, is_joined):
        class Serializer(serializers.Serializer):
            story = serializer_of(Story)()

        objs = Reply.objects.select_related("story") if is_joined else Reply.objects.all()
        found, queries, trips = costs(shown, objs, Serializer)

        assert found == [{"story": {"hits": 2}}] * 24
        if is_joined:
            assert (queries, trips) == (1 + read[0], read[1])

    def test_source_through_several_relations(self, sections, costs, read):
        class Serializer(serializers.Serializer):
            others = serializer_of(Story)(many=True, source="story.section.stories")

        objs = [*Reply.objects.select_related("story").prefetch_related("story__section__stories")]
        found, queries, trips = costs(shown, objs, Serializer)

        assert found == [{"others": [{"hits": 2}] * 4}] * 24
        assert (queries, trips) == read

    def test_to_one_relation_that_leads_nowhere(self, buffer):
        class Serializer(serializers.Serializer):
            cover = serializer_of(Cover)(required=False)

        record_hit(Cover.objects.create(photo=Photo.objects.create()))
        Photo.objects.create()
        objs = Photo.objects.select_related("cover")

        assert sorted(str(photo["cover"]) for photo in shown(objs, Serializer)) == [
            "None",
            "{'hits': 1}",
        ]


class TestNumbersThatAreMissing:
    def test_object_that_is_not_saved_has_none(self, articles):
        found = shown([Article(title="new"), Article.objects.get(pk=articles[1].pk)])

        assert [article["hits"] for article in found] == [None, 2]

    def test_servers_that_are_away_cost_one_try(self, redis_buffer, settings, monkeypatch):
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
        record_hits(articles)
        change_alias(settings, LOCATION=NOWHERE)
        tries = []

        def fail(*args, **kwargs):
            tries.append(args)
            return {}

        monkeypatch.setattr("django_hitcount.prefetching.read_numbers", fail)
        found = shown(Article.objects.all())

        assert {article["hits"] for article in found} == {None}
        assert len(tries) == 1

    def test_redis_that_is_away_does_not_matter(self, redis_buffer, settings):
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
        record_hits(articles)
        flush_hits()
        change_alias(settings, LOCATION=NOWHERE)
        outages.page_read_breaker.cache_clear()

        assert [article["hits"] for article in shown(Article.objects.all())] == [1, 1, 1]


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [({"counter": "shares"}, "'shares'"), ({"days": 0}, "days: 0"), ({"days": "7"}, "'7'")],
    )
    def test_wrong_ones_are_an_error_that_says_so(self, articles, options, message):
        with pytest.raises(InvalidArgument, match=message):
            shown(Article.objects.all(), serializer_of(Article, **options))

    def test_field_may_be_declared_before_its_counter(self, settings):
        settings.HITCOUNT = {"COUNTRES": {}}

        assert HitCountField(counter="likes").counter == "likes"

    def test_is_read_only_and_keeps_its_other_options(self):
        field = serializer_of(Article, help_text="How often it was read.")().fields["hits"]

        assert field.read_only
        assert field.allow_null  # Schemas then say that the number may be null.
        assert field.help_text == "How often it was read."
        with pytest.raises(TypeError):
            HitCountField(read_only=False)

    def test_input_is_ignored(self, buffer):
        serializer = ArticleSerializer(data={"title": "Tea", "hits": 5})
        assert serializer.is_valid()

        assert serializer.save().hits == 0
        assert StorySerializer().fields["hits"].label
