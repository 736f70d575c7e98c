"""HitCountOrderingFilter orders by hits, and a check finds the views that only seem to."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.checks import run_checks
from django.db.models import Count, F
from django.urls import include, path
from rest_framework import filters, generics, serializers, views, viewsets
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import with_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.rest_framework import HitCountField, HitCountOrderingFilter
from tests.app.models import Article, Plain, Recipe, Reply
from tests.redis_server import sends
from tests.rest_framework.api import (
    ArticleSerializer,
    ArticleViewSet,
    WeekSerializer,
    listed,
    request,
)
from tests.rest_framework.test_fields import serializer_of
from tests.visiting import visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(buffer) -> list[Article]:
    """The second one has the most hits, and the first one the most downloads."""
    articles = [Article.objects.create(title=title) for title in "cab"]
    record_hits([articles[0], *[articles[1]] * 3, articles[2]])
    record_hits([*[articles[0]] * 2, articles[2]], counter="downloads")
    flush_hits()
    return articles


def titles(ordering: str, view: object = ArticleViewSet) -> str:
    return "".join(article["title"] for article in listed(f"/?ordering={ordering}", view))


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ("-hits", "acb"),
        ("hits", "cba"),
        ("hits,-title", "cba"),
        ("hits,title", "bca"),
        ("-downloads", "cba"),
        ("downloads", "abc"),
        ("hits,downloads", "bca"),
        ("title", "abc"),
        ("-title", "cba"),
        ("", "cab"),
        ("nothing", "cab"),
        ("downloads_hits", "cab"),
    ],
)
def test_orders(articles, ordering, expected):
    """``downloads`` is a field of the serializer. ``downloads_hits`` is not allowed by the view."""
    assert titles(ordering) == expected


@pytest.mark.parametrize("ordering", ["-downloads_hits", "-downloads"])
def test_orders_by_the_name_of_the_annotation(articles, ordering):
    class Ordered(ArticleViewSet):
        ordering_fields = ["downloads_hits", "downloads"]

    assert titles(ordering, Ordered) == "cba"


def test_default_ordering_of_a_view(articles):
    class Ordered(ArticleViewSet):
        ordering = "-hits"

    assert titles("", Ordered) == "acb"


@pytest.mark.parametrize(
    "queryset",
    [with_hits(Article.objects.order_by("pk")), Article.objects.with_hits(name="reads")],
    ids=["the same annotation", "another one"],
)
def test_queryset_that_has_the_hits_already(articles, queryset):
    class Annotated(ArticleViewSet):
        pass

    Annotated.queryset = queryset
    assert titles("-hits", Annotated) == "acb"


def test_without_ordering_fields_those_of_the_serializer(articles):
    class Free(ArticleViewSet):
        ordering_fields = None

    class Week(Free):
        serializer_class = WeekSerializer

    assert [titles(name, Free) for name in ("-hits", "-downloads", "title")] == [
        "acb",
        "cba",
        "abc",
    ]
    assert [article["week"] for article in listed("/?ordering=-week", Week)] == [3, 1, 1]
    assert [article["hits"] for article in listed("/?ordering=-hits", Week)] == [3, 1, 1]


def test_all_columns_and_the_hits(articles):
    class Free(ArticleViewSet):
        ordering_fields = "__all__"

    names = ("-hits", "-downloads", "title", "downloads_hits")
    assert [titles(name, Free) for name in names] == ["acb", "cba", "abc", "cab"]


def test_field_of_the_serializer_with_another_name(articles):
    class Serializer(serializers.ModelSerializer):
        reads = HitCountField(source="hits")
        copies = HitCountField(counter="downloads", source="anything")

        class Meta:
            model = Article
            fields = ["title", "reads", "copies"]

    class Free(ArticleViewSet):
        serializer_class = Serializer
        ordering_fields = None

    class View(Free):
        ordering_fields = ["reads", "copies"]

    for view in (Free, View):
        assert [titles(name, view) for name in ("-reads", "-copies")] == ["acb", "cba"]


def test_hits_of_other_objects_are_no_order(settings):
    class Serializer(serializers.ModelSerializer):
        own = HitCountField()
        week = HitCountField(days=7)
        of_story = HitCountField(source="story.hits")
        of_same = HitCountField(source="story")
        story = HitCountField()

        class Meta:
            model = Reply
            fields = ["own", "week", "of_story", "of_same", "story"]

    class View(ArticleViewSet):
        serializer_class = Serializer
        ordering_fields = None

    class Listing(View):
        ordering_fields = ["own", "week", "of_story", "of_same", "story"]

    for view, names in ((View, ["own", "week"]), (Listing, ["own", "week", "story"])):
        found = HitCountOrderingFilter().get_valid_fields(Reply.objects.all(), view())
        assert [name for name, _ in found] == names


class DaysSerializer(serializers.ModelSerializer):
    """``hits`` are those of some days, too."""

    hits = HitCountField(days=7)
    today = HitCountField(days=1)
    copies = HitCountField(counter="downloads", days=7)

    class Meta:
        model = Article
        fields = ["title", "hits", "today", "copies"]


@pytest.fixture
def busy_days(buffer) -> None:
    """Of all time, "a" has the most hits, also tomorrow; of seven days "b"; and today "c"."""
    tomorrow = day_of() + timedelta(days=1)
    last_of_seven = day_of() - timedelta(days=6)
    earlier = last_of_seven - timedelta(days=1)
    for title, days in (
        ("a", [*[earlier] * 5, day_of(), *[tomorrow] * 9]),
        ("b", [earlier, *[last_of_seven] * 4]),
        ("c", [day_of()] * 2),
    ):
        article = Article.objects.create(title=title)
        for day in days:
            record_hit(article, at=day)
        record_hit(article, counter="downloads", amount=ord(title))
    flush_hits()


@pytest.mark.parametrize(
    "queryset",
    [Article.objects.order_by("pk"), with_hits(Article.objects.order_by("pk"))],
    ids=["plain", "with_hits"],
)
@pytest.mark.parametrize("fields", [["hits", "today", "copies"], "__all__", None])
@pytest.mark.parametrize("paginator", [ArticleViewSet.pagination_class, CursorPagination])
def test_orders_by_the_hits_of_days(busy_days, queryset, fields, paginator):
    class Ordered(ArticleViewSet):
        serializer_class = DaysSerializer
        pagination_class = type("Pages", (paginator,), {"page_size": 10})
        ordering_fields = fields

    Ordered.queryset = queryset

    for ordering, expected in (
        ("-hits", "bca"),
        ("hits", "acb"),
        ("-today", "cab"),
        ("today", "bac"),
        ("-today,-hits", "cab"),
        ("-copies", "cba"),
    ):
        assert titles(ordering, Ordered) == expected


def test_cursor_of_the_hits_of_days(busy_days):
    class Short(ArticleViewSet):
        serializer_class = DaysSerializer
        pagination_class = type("Pages", (CursorPagination,), {"page_size": 1})

    address, found = "/?ordering=-hits", ""
    while address:
        page = Short.as_view({"get": "list"})(request(path=address)).data
        found += page["results"][0]["title"]
        address = page["next"]

    assert found == "bca"


@pytest.mark.parametrize("ordering", ["-of_story", "of_story,-own", "-of_same"])
def test_no_request_for_the_hits_of_other_objects_is_an_error(buffer, ordering):
    class Serializer(serializers.ModelSerializer):
        own = HitCountField()
        of_story = HitCountField(source="story.hits")
        of_same = HitCountField(source="story")

        class Meta:
            model = Reply
            fields = ["own", "of_story", "of_same"]

    class View(ArticleViewSet):
        queryset = Reply.objects.order_by("pk")
        serializer_class = Serializer
        ordering_fields = ["own", "of_story", "of_same"]

    assert listed(f"/?ordering={ordering}", View) == []


def test_view_without_a_serializer(articles):
    class View(generics.GenericAPIView):
        queryset = Article.objects.all()
        filter_backends = [HitCountOrderingFilter]
        ordering_fields = ["hits"]

        def get(self, request):
            return Response([obj.title for obj in self.filter_queryset(self.get_queryset())])

    assert View.as_view()(request(path="/?ordering=-hits")).data == ["a", "c", "b"]


@pytest.mark.parametrize(
    "make",
    [
        Article.objects.distinct,
        lambda: Article.objects.annotate(reviews=Count("review")),
        lambda: with_hits(Article.objects.filter(title="a")).union(
            with_hits(Article.objects.all())
        ),
    ],
    ids=["distinct", "aggregate", "union of querysets that have the hits"],
)
def test_other_queries(articles, make):
    assert [obj.title for obj in ordered("-hits", make())] == ["a", "c", "b"]


@pytest.mark.parametrize(
    "queryset",
    [Article.objects.all(), with_hits(Article.objects.all())],
    ids=["plain", "with_hits"],
)
@pytest.mark.parametrize("name", ["hits", "downloads"])
@pytest.mark.parametrize(("sign", "expected"), [("", "0123456"), ("-", "6452301")])
def test_cursor_pagination(buffer, queryset, name, sign, expected):
    """The position is the number that the query compares: with Redis, not the exact one."""

    class Short(ArticleViewSet):
        pagination_class = type("Pages", (CursorPagination,), {"page_size": 2})

    Short.queryset = queryset
    counter = "views" if name == "hits" else name
    articles = [Article.objects.create(title=str(n)) for n in range(7)]
    for n, article in enumerate(articles):
        record_hits([article] * (n // 2), counter=counter)
    flush_hits()
    if buffer.keeps_hits:
        record_hits(articles[2:4], counter=counter, amount=10)
    found, address = [], f"/?ordering={sign}{name}"
    while address:
        page = Short.as_view({"get": "list"})(request(path=address)).data
        found += [(article["title"], article[name]) for article in page["results"]]
        address = page["next"]

    assert "".join(title for title, _ in found) == expected
    assert dict(found)["3"] == (11 if buffer.keeps_hits else 1)  # It is shown exactly.


def test_repeated_term_is_compiled_once(buffer):
    assert ordered(",".join(["-hits"] * 1000), Article.objects.all()).query.order_by == (
        "-hits_in_tables",
        "pk",
    )


def test_annotation_whose_name_ends_as_ours_is_left_alone(articles):
    class Annotated(ArticleViewSet):
        queryset = Article.objects.annotate(copies_in_tables=F("pk"))

    assert titles("-hits", Annotated) == "acb"


def test_annotation_of_the_project_is_left_alone(articles):
    found = ordered("hits", Article.objects.annotate(hits=-F("pk")))

    assert [*found] == articles[::-1]


@pytest.mark.parametrize(
    "queryset",
    [
        Article.objects.annotate(hits=F("pk")),
        Article.objects.with_hits(counter="downloads", name="hits"),
    ],
    ids=["of the project", "hits of another counter"],
)
def test_annotation_with_the_name_of_hits_does_not_order_a_field(articles, queryset):
    class Serializer(serializers.ModelSerializer):
        reads = HitCountField()

        class Meta:
            model = Article
            fields = ["title", "reads"]

    class Annotated(ArticleViewSet):
        serializer_class = Serializer
        ordering_fields = ["reads"]

    Annotated.queryset = queryset
    assert titles("-reads", Annotated) == "acb"


@pytest.mark.parametrize("size", [1, 2])
def test_cursor_of_an_annotation_with_another_name(articles, size):
    """Its number is exact when it is shown, so it is no position."""

    class Short(ArticleViewSet):
        queryset = Article.objects.with_hits(counter="downloads", name="copies")
        pagination_class = type("Pages", (CursorPagination,), {"page_size": size})
        ordering_fields = ["copies"]

    record_hits(articles, counter="downloads", amount=10)
    address, found = "/?ordering=-copies", ""
    while address and len(found) < 9:
        page = Short.as_view({"get": "list"})(request(path=address)).data
        found += "".join(article["title"] for article in page["results"])
        address = page["next"]

    assert found == "cba"


def test_cursor_of_visitors(rule):
    """They are exact when they are shown, as hits are."""

    class Short(ArticleViewSet):
        queryset = Article.objects.with_visitors()
        serializer_class = WeekSerializer
        pagination_class = type("Pages", (CursorPagination,), {"page_size": 1})
        ordering_fields = ["visitors"]

    rule(visitors=True)
    articles = [Article.objects.create(title=title) for title in "abc"]
    for n, article in enumerate(articles, start=1):
        visit(article, range(n))
    flush_hits()
    for article in articles:
        visit(article, [50, 51, 52])
    address, found = "/?ordering=-visitors", []
    while address and len(found) < 9:
        page = Short.as_view({"get": "list"})(request(path=address)).data
        found += [article["hits"] for article in page["results"]]
        address = page["next"]

    assert found == [6, 5, 4]


def test_column_of_this_name_is_left_alone(buffer):
    """Its own table has the hits: django_hitcount.fields.HitCountField."""

    class Recipes(ArticleViewSet):
        queryset = Recipe.objects.all()
        serializer_class = serializer_of(Recipe)
        ordering_fields = ["views", "downloads"]

    Recipe.objects.bulk_create([Recipe(title="a", downloads=1), Recipe(title="b", downloads=2)])
    found = HitCountOrderingFilter().filter_queryset(
        SimpleNamespace(query_params={"ordering": "-downloads"}), Recipe.objects.all(), Recipes()
    )

    assert found.query.annotations == {}
    assert found.query.order_by == ("-downloads",)


def test_model_without_the_mixin(buffer):
    class Plains(ArticleViewSet):
        queryset = Plain.objects.order_by("pk")
        serializer_class = serializer_of(Plain)
        ordering_fields = ["hits"]

    record_hits([Plain.objects.create(name="a"), *[Plain.objects.create(name="b")] * 2])
    flush_hits()

    assert [plain["hits"] for plain in listed("/?ordering=-hits", Plains)] == [2, 1]


def test_equal_hits_are_on_no_two_pages(buffer):
    class Short(ArticleViewSet):
        pagination_class = type("Pages", (ArticleViewSet.pagination_class,), {"page_size": 7})

    Article.objects.bulk_create(Article(title=str(n)) for n in range(40))
    found = [
        article["id"]
        for page in range(1, 7)
        for article in listed(f"/?ordering=-hits&page={page}", Short)
    ]

    assert len(found) == len({*found}) == 40
    query = ordered("-hits", Article.objects.all()).query
    assert query.order_by == ("-hits_in_tables", "pk")  # SQLite has an order without it, too.


def ordered(ordering: str, queryset):
    """A queryset, as a request orders it."""
    request = SimpleNamespace(query_params={"ordering": ordering})
    return HitCountOrderingFilter().filter_queryset(request, queryset, ArticleViewSet())


def test_ordered_list_is_one_read(redis_buffer, django_assert_num_queries):
    record_hits([Article.objects.create(title=str(n)) for n in range(100)])
    flush_hits()
    listed()
    with sends() as trips, django_assert_num_queries(2):
        assert {article["hits"] for article in listed("/?ordering=-hits")} == {1}

    assert trips() == 1


class OwnFilter(filters.BaseFilterBackend):
    """A filter of a project, which may annotate the queryset for the next one."""

    def filter_queryset(self, request, queryset, view):
        return with_hits(queryset)


class OwnOrdering(filters.OrderingFilter):
    """The same in one."""

    def filter_queryset(self, request, queryset, view):
        return super().filter_queryset(request, with_hits(queryset), view)


# Django's checks of fields may query each database.
@pytest.mark.django_db(databases="__all__")
class TestCheck:
    """E011: a view wants to order by hits, and its filters do not."""

    class View(generics.ListAPIView):
        queryset = Article.objects.all()
        serializer_class = ArticleSerializer
        filter_backends = [filters.OrderingFilter]
        ordering_fields: object = ["title"]

    @pytest.fixture(autouse=True)
    def install(self, settings):
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "rest_framework"]

    @pytest.fixture
    def found(self, settings):
        """Returns what the check finds in a view, or a viewset, with other attributes."""

        def check(base: type = self.View, **attributes: object) -> list[str]:
            view = type("Articles", (base,), attributes)
            if issubclass(base, viewsets.ViewSetMixin):
                router = SimpleRouter()
                router.register("a", view, "a")
                patterns = [path("api/", include(router.urls))]
            else:
                patterns = [path("a/", view.as_view())]
            settings.ROOT_URLCONF = (*patterns, path("b/", views.APIView.as_view()))
            return [message.msg for message in run_checks() if message.id == "django_hitcount.E011"]

        return check

    LOST = ["Articles cannot order by 'hits': no filter of it knows these hits."]

    @pytest.mark.parametrize(
        "attributes",
        [
            {"ordering_fields": ["title", "hits"]},
            {"ordering_fields": ("title", ("hits", "Views"))},
            {"ordering": "-hits"},
            {"ordering": ["title", "-hits"]},
            {"ordering_fields": ["hits"], "filter_backends": []},
            {"ordering_fields": ["hits"], "queryset": Article.objects},
            {
                "ordering_fields": ["hits"],
                "filter_backends": [type("F", (filters.OrderingFilter,), {})],
            },
            {"serializer_class": serializer_of(Article), "ordering_fields": None},
            {"serializer_class": DaysSerializer, "ordering_fields": ["hits"]},
        ],
    )
    def test_lost(self, found, attributes):
        assert found(**attributes) == self.LOST

    @pytest.mark.parametrize("source", ["story", "story.hits"])
    @pytest.mark.parametrize("backend", [HitCountOrderingFilter, filters.OrderingFilter])
    @pytest.mark.parametrize("names", [{"ordering_fields": ["of"]}, {"ordering": "-of"}])
    def test_hits_of_other_objects(self, found, source, backend, names):
        fields = {"of": HitCountField(source=source), "Meta": serializer_of(Reply).Meta}
        lost = found(
            queryset=Reply.objects.all(),
            serializer_class=type("Serializer", (serializer_of(Reply),), fields),
            filter_backends=[backend],
            **{"ordering_fields": ["own"], **names},
        )

        assert lost == ["Articles cannot order by 'of': no filter of it knows these hits."]

    @pytest.mark.parametrize(
        ("source", "backend", "is_lost"),
        [
            ("story.hits", filters.OrderingFilter, True),  # It allows "story__hits", and fails.
            ("story", filters.OrderingFilter, False),  # It orders by the column.
            ("story.hits", HitCountOrderingFilter, False),
            ("story", HitCountOrderingFilter, False),
        ],
    )
    def test_hits_of_other_objects_without_ordering_fields(self, found, source, backend, is_lost):
        fields = {"of": HitCountField(source=source), "Meta": SimpleNamespace(model=Reply)}
        lost = found(
            queryset=Reply.objects.all(),
            serializer_class=type("Serializer", (serializers.Serializer,), fields),
            filter_backends=[backend],
            ordering_fields=None,
        )

        assert (
            lost == ["Articles cannot order by 'of': no filter of it knows these hits."] * is_lost
        )

    def test_lost_in_a_viewset(self, found):
        assert found(ArticleViewSet, filter_backends=[filters.OrderingFilter]) == [
            "Articles cannot order by 'hits', 'downloads': no filter of it knows these hits."
        ]

    def test_several_names(self, found):
        assert found(ordering_fields=["downloads_hits"], ordering="hits") == [
            "Articles cannot order by 'hits', 'downloads_hits': no filter of it knows these hits."
        ]

    @pytest.mark.parametrize(
        "attributes",
        [
            {},
            {"ordering_fields": "__all__"},
            {"ordering_fields": ["hits"], "filter_backends": [HitCountOrderingFilter]},
            {
                "ordering_fields": ["hits"],
                "filter_backends": [HitCountOrderingFilter],
                "serializer_class": DaysSerializer,
            },
            {"ordering": "-hits", "filter_backends": [type("F", (HitCountOrderingFilter,), {})]},
            {"ordering_fields": ["hits"], "queryset": with_hits(Article.objects.all())},
            {"ordering_fields": ["hits"], "queryset": None},
            {"ordering_fields": ["hits"], "get_queryset": lambda self: with_hits(Article.objects)},
            {"ordering_fields": ["downloads"], "queryset": Recipe.objects.all()},
            {"filter_backends": []},
            {"ordering_fields": None, "serializer_class": None},
            {"ordering_fields": ["hits"], "queryset": property(lambda self: Article.objects.all())},
            {"ordering_fields": property(lambda self: ["hits"])},
            {"ordering": property(lambda self: "-hits")},
            {"ordering": [F("title").desc(), ()]},
            {"ordering_fields": ["hits"], "filter_backends": property(lambda self: [])},
            {"ordering_fields": ["hits"], "filter_queryset": lambda self, queryset: queryset},
            {"ordering_fields": ["hits"], "filter_backends": [OwnFilter, filters.OrderingFilter]},
            {"ordering_fields": ["hits"], "filter_backends": [OwnOrdering]},
        ],
    )
    def test_fine(self, found, attributes):
        assert found(**attributes) == []

    def test_as_view_may_change_a_view(self, settings):
        fine = self.View.as_view(ordering_fields=["hits"], filter_backends=[HitCountOrderingFilter])
        lost = self.View.as_view(ordering_fields=["hits"])
        settings.ROOT_URLCONF = (path("a/", fine), path("b/", lost))

        assert [
            message.msg for message in run_checks() if message.id == "django_hitcount.E011"
        ] == ["View cannot order by 'hits': no filter of it knows these hits."]

    def test_lost_only_if_the_column_is_missing(self, found):
        fields = {"views": HitCountField(), "Meta": serializer_of(Recipe).Meta}
        serializer = type("Serializer", (serializer_of(Recipe),), fields)

        assert (
            found(
                queryset=Recipe.objects.all(),
                serializer_class=serializer,
                ordering_fields=["views"],
            )
            == []
        )

    def test_projects_without_the_framework_are_not_asked(self, settings, found):
        settings.INSTALLED_APPS = settings.INSTALLED_APPS[:-1]

        assert found(ordering="-hits") == []
