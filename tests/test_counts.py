"""@counts: a function view counts, once it has answered."""

from __future__ import annotations

import pytest
from asgiref.sync import iscoroutinefunction, sync_to_async
from django.db import transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, render
from django.template.response import TemplateResponse
from django.test import RequestFactory
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import cache_page

from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.models import Counter
from django_hitcount.reading import get_hits
from django_hitcount.refusals import bot
from django_hitcount.views import counts
from tests.app.models import Article, Plain
from tests.browsers import BROWSER

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_of_the_thread_is_left"),
]


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


def get(path: str = "/", method: str = "GET") -> HttpRequest:
    return RequestFactory(headers=BROWSER).generic(method, path)


def find(request: HttpRequest, pk: int) -> Article:
    return Article.objects.get(pk=pk)


async def afind(request: HttpRequest, pk: int) -> Article:
    return await Article.objects.aget(pk=pk)


FINDERS = {
    "sync": find,
    "sync that may raise 404": lambda request, pk: get_object_or_404(Article, pk=pk),
    "async": afind,
    "lambda": lambda request, pk: Article.objects.get(pk=pk),
    "lambda that returns a coroutine": lambda request, pk: Article.objects.aget(pk=pk),
    "async that may raise 404": lambda request, pk: aget_object_or_404(Article, pk=pk),
}


@pytest.mark.parametrize("finder", FINDERS.values(), ids=FINDERS)
class TestSync:
    def test_counts(self, article, finder):
        @counts(finder)
        def view(request: HttpRequest, pk: int) -> HttpResponse:
            """Shows an article."""
            return HttpResponse("Tea")

        assert view(get(), pk=article.pk).content == b"Tea"
        assert view(get(), article.pk).content == b"Tea"
        assert article.hits == 2
        assert (view.__name__, view.__doc__) == ("view", "Shows an article.")

    def test_missing_object_counts_nothing(self, article, finder, caplog):
        view = counts(finder)(lambda request, pk: HttpResponse("Tea"))

        assert view(get(), pk=article.pk + 1).content == b"Tea"
        assert caplog.records == []


@pytest.mark.parametrize("finder", FINDERS.values(), ids=FINDERS)
class TestAsync:
    async def test_counts(self, buffer, finder):
        article = await Article.objects.acreate(title="Tea")

        @counts(finder)
        async def view(request: HttpRequest, pk: int) -> HttpResponse:
            """Shows an article."""
            return HttpResponse("Tea")

        assert iscoroutinefunction(view)  # Django asks.
        assert (await view(get(), pk=article.pk)).content == b"Tea"
        assert (await view(get(), article.pk)).content == b"Tea"
        assert await article.aget_hits() == 2
        assert (view.__name__, view.__doc__) == ("view", "Shows an article.")

    async def test_missing_object_counts_nothing(self, buffer, finder, caplog):
        @counts(finder)
        async def view(request: HttpRequest, pk: int) -> HttpResponse:
            return HttpResponse("Tea")

        assert (await view(get(), pk=7)).content == b"Tea"
        assert caplog.records == []


@pytest.mark.parametrize("status", [200, 201, 204, 206, 301, 302, 304, 400, 404, 500])
def test_only_200_and_304_count(article, status):
    view = counts(find)(lambda request, pk: HttpResponse(status=status))
    view(get(), article.pk)

    assert article.hits == (status in (200, 304))


@pytest.mark.parametrize("status", [200, 304, 404])
async def test_only_200_and_304_count_in_async_views(buffer, status):
    article = await Article.objects.acreate(title="Tea")

    @counts(afind)
    async def view(request: HttpRequest, pk: int) -> HttpResponse:
        return HttpResponse(status=status)

    await view(get(), article.pk)
    assert await article.aget_hits() == (status in (200, 304))


def test_view_that_fails_counts_nothing(article):
    @counts(find)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        view(get(), article.pk)
    assert article.hits == 0


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_refusals_apply(article, method):
    view = counts(find)(lambda request, pk: HttpResponse())
    view(get(method=method), article.pk)
    assert article.hits == 0

    view = counts(find, refusals=[])(lambda request, pk: HttpResponse())
    view(get(method=method), article.pk)
    assert article.hits == 1


def test_counter(article):
    counts(find, counter="downloads")(lambda request, pk: HttpResponse())(get(), article.pk)

    assert (article.hits, get_hits(article, counter="downloads")) == (0, 1)


def test_page_that_is_no_object(buffer):
    view = counts(lambda request: Counter("imprint"))(lambda request: HttpResponse())
    for _ in range(2):
        view(get())

    assert get_hits(Counter("imprint")) == 2


def test_finder_may_return_none(article):
    view = counts(lambda request, pk: None)(lambda request, pk: HttpResponse("Tea"))

    assert view(get(), article.pk).content == b"Tea"


def test_finder_may_use_what_the_view_has_found(article, django_assert_num_queries):
    @counts(lambda request, pk: request.article)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        request.article = find(request, pk)
        return HttpResponse()

    view(get(), article.pk)
    assert article.hits == 1


@pytest.mark.parametrize("answer", [render, TemplateResponse], ids=["rendered", "rendered later"])
def test_tag_on_the_same_page_counts_once(article, answer):
    @counts(find)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        return answer(request, "article.html", {"article": find(request, pk)})

    response = view(get(), article.pk)
    if answer is TemplateResponse:
        response.render()
    assert response.content == b"1\n"
    assert article.hits == 1


def test_streaming_answer_is_untouched(article):
    answer = StreamingHttpResponse(iter([b"Te", b"a"]))
    response = counts(find)(lambda request, pk: answer)(get(), article.pk)

    assert response is answer
    assert [*response] == [b"Te", b"a"]
    assert article.hits == 1


def test_above_cache_page_it_counts_every_visit(article):
    shown = []

    @counts(find)
    @cache_page(300)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        shown.append(pk)
        return HttpResponse("Tea")

    path = f"/cached/{article.pk}/"
    assert [view(get(path), article.pk).content for _ in range(3)] == [b"Tea"] * 3
    assert (len(shown), article.hits) == (1, 3)


def test_refusals_may_be_an_iterator(article):
    """It is read once, and not by the first request."""
    view = counts(find, refusals=iter([bot]))(lambda request, pk: HttpResponse())
    for _ in range(3):
        view(RequestFactory().get("/"), article.pk)

    assert article.hits == 0


@pytest.mark.parametrize("name", ["dispatch", "get"])
@pytest.mark.parametrize("finder", FINDERS.values(), ids=FINDERS)
class TestClassBasedView:
    def test_sync(self, article, finder, name):
        @method_decorator(counts(finder), name=name)
        class ArticleView(View):
            def get(self, request: HttpRequest, pk: int) -> HttpResponse:
                return HttpResponse("Tea")

        assert ArticleView.as_view()(get(), pk=article.pk).content == b"Tea"
        assert article.hits == 1

    async def test_async(self, buffer, finder, name):
        article = await Article.objects.acreate(title="Tea")

        @method_decorator(counts(finder), name=name)
        class ArticleView(View):
            async def get(self, request: HttpRequest, pk: int) -> HttpResponse:
                return HttpResponse("Tea")

        assert (await ArticleView.as_view()(get(), pk=article.pk)).content == b"Tea"
        assert await article.aget_hits() == 1


class TestErrors:
    """A mistake in the finder must not break the page."""

    def test_error_is_logged(self, article, caplog):
        view = counts(lambda request, slug: None)(lambda request, pk: HttpResponse("Tea"))

        assert view(get(), pk=article.pk).content == b"Tea"
        assert [record.exc_info[0] for record in caplog.records] == [TypeError]

    @pytest.mark.parametrize("is_async", [True, False])
    async def test_error_is_logged_in_async_views(self, buffer, caplog, is_async):
        async def fails(request: HttpRequest) -> Article:
            raise ZeroDivisionError

        finder = fails if is_async else lambda request: 1 / 0

        @counts(finder)
        async def view(request: HttpRequest) -> HttpResponse:
            return HttpResponse("Tea")

        assert (await view(get())).content == b"Tea"
        assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]

    def test_error_leaves_the_transaction_of_the_view(self, article, caplog):
        def breaks(request: HttpRequest) -> None:
            Plain.objects.raw("SELECT * FROM nothing")[0]

        @transaction.atomic
        def in_transaction(request: HttpRequest) -> HttpResponse:
            Plain.objects.create(name="of the view")
            return counts(breaks)(lambda request: HttpResponse())(request)

        assert in_transaction(get()).status_code == 200
        assert Plain.objects.exists()
        assert len(caplog.records) == 1

    def test_something_else_than_an_object_is_an_error(self, article):
        with pytest.raises(UnsavedObject):
            counts(lambda request: "5")(lambda request: HttpResponse())(get())

    def test_wrong_refusals_are_an_error_when_the_view_is_decorated(self):
        with pytest.raises(InvalidArgument, match="'bot'"):
            counts(find, refusals=["bot"])


async def test_async_view_in_which_the_tag_counts(buffer):
    article = await Article.objects.acreate(title="Tea")

    @counts(afind)
    async def view(request: HttpRequest, pk: int) -> HttpResponse:
        return await sync_to_async(render)(request, "article.html", {"article": article})

    assert (await view(get(), article.pk)).content == b"1\n"
    assert await article.aget_hits() == 1
