"""Recipes for other libraries: what the docs say is what runs here."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.core.files.storage import InMemoryStorage
from django.http import Http404, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.urls import path

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from django_hitcount.rest_framework import HitCountOrderingFilter
from django_hitcount.testing import BrowserClient
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.recipes.docs import run
from tests.redis_server import sends
from tests.rest_framework.api import Pages, listed

pytestmark = pytest.mark.django_db(transaction=True)

APP = {"user-agent": "okhttp/4.12.0"}


@pytest.fixture
def articles(buffer) -> list[Article]:
    articles = [Article.objects.create(title=title) for title in ("Tea", "Coffee")]
    record_hits([articles[0], *[articles[1]] * 2])
    get_hits(articles)
    return articles


def get(path: str = "/", **data: Any) -> Any:
    return RequestFactory(headers=BROWSER).get(path, data)


class TestFunctionViews:
    def test_view(self, articles):
        by_slug = SimpleNamespace(get=lambda slug: Article.objects.get(title=slug))
        made = run("Function views", Article=SimpleNamespace(objects=by_slug))
        made["render"] = lambda request, name, context: HttpResponse(name)

        assert made["article_detail"](get(), slug="Tea").content == b"article.html"
        assert get_hits(articles[0]) == 2


class TestDownloads:
    def test_views(self, articles):
        storage = InMemoryStorage()
        storage.save("tea.pdf", io.BytesIO(b"Tea"))
        made = run("Downloads", Article=Article)
        with mock.patch.object(Article, "file", create=True) as file:
            file.name = "tea.pdf"
            file.open.side_effect = lambda: storage.open("tea.pdf")
            sent = made["download"](get(), articles[0].pk)
            led = made["download_by_nginx"](get(), articles[0].pk)

        assert b"".join(sent.streaming_content) == b"Tea"
        assert led["X-Accel-Redirect"] == "/protected/tea.pdf"
        assert get_hits(articles[0], counter="downloads") == 2
        with pytest.raises(Http404):
            made["download"](get(), 0)


class TestDjangoRestFramework:
    @pytest.fixture
    def made(self, settings):
        counters = {"views": {}, "api_views": {"refusals": ["django_hitcount.refusals.method"]}}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
        return run("Django REST framework", Article=Article)

    def test_viewset(self, made, articles):
        record_hits([*articles, articles[1]], counter="api_views")
        flush_hits()
        viewset = made["ArticleViewSet"]
        assert viewset.filter_backends == [HitCountOrderingFilter]
        viewset.pagination_class = Pages

        found = listed("/?ordering=-hits", viewset)
        assert [(row["hits"], row["hits_this_week"]) for row in found] == [(2, 2), (1, 1)]
        request = RequestFactory(headers=APP).get("/")
        shown = viewset.as_view({"get": "retrieve"})(request, pk=articles[0].pk).data
        assert (shown["hits"], shown["hits_this_week"]) == (2, 2)


class TestNinja:
    @pytest.fixture
    def client(self, articles, settings):
        settings.ROOT_URLCONF = (path("api/", run("Django Ninja")["api"].urls),)
        return BrowserClient()

    def test_list_is_one_read(self, client, buffer, django_assert_num_queries):
        with sends() as trips, django_assert_num_queries(1):
            found = client.get("/api/articles").json()

        assert [(row["title"], row["hits"]) for row in found] == [("Tea", 1), ("Coffee", 2)]
        assert trips() == buffer.keeps_hits

    def test_operation_counts(self, client, articles):
        address = f"/api/articles/{articles[0].pk}"

        assert [client.get(address).json()["hits"] for _ in range(2)] == [2, 3]
        assert client.get("/api/articles/0").status_code == 404
        assert get_hits(articles[0]) == 3


class TestGraphQL:
    @pytest.fixture
    def ask(self, articles, settings):
        from strawberry.django.views import GraphQLView

        view = GraphQLView.as_view(schema=run("GraphQL")["schema"])

        def ask(query: str, **headers: str) -> Any:
            factory = RequestFactory(headers={**BROWSER, **headers})
            answer = view(factory.post("/", {"query": query}, content_type="application/json"))
            return json.loads(answer.content)["data"]

        return ask

    def test_list_is_one_read(self, ask, buffer, django_assert_num_queries):
        with sends() as trips, django_assert_num_queries(1):
            found = ask("{ articles { title hits } }")

        assert found["articles"] == [
            {"title": "Tea", "hits": 1},
            {"title": "Coffee", "hits": 2},
        ]
        assert trips() == buffer.keeps_hits

    def test_query_by_post_counts(self, ask, articles):
        query = f'{{ article(pk: "{articles[0].pk}") {{ title hits }} }}'

        assert ask(query) == {"article": {"title": "Tea", "hits": 2}}
        assert ask(query, **{"user-agent": "Googlebot/2.1"}) == {
            "article": {"title": "Tea", "hits": 2}
        }


class TestHaystack:
    @pytest.fixture
    def index(self, settings):
        settings.HAYSTACK_CONNECTIONS = {
            "default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}
        }
        import haystack
        from haystack import indexes

        class ArticleIndex(indexes.SearchIndex, indexes.Indexable):
            text = indexes.CharField(document=True, model_attr="title")

            def get_model(self) -> type[Article]:
                return Article

        haystack.connections["default"].get_unified_index().build([ArticleIndex()])

    def test_results_are_one_read(self, index, articles, buffer):
        (result,) = run("Haystack")["find"]("Tea")
        assert result.object == articles[0]
        shown = Template("{% load hitcount %}{% hits result.object %}")
        with sends() as trips:
            text = shown.render(Context({"result": result}))

        assert trips() == 0
        assert text == "1"

    def test_result_itself_is_no_object(self, index, articles):
        (result,) = run("Haystack")["SearchQuerySet"]().auto_query("Coffee")
        with pytest.raises(ValueError, match="Cannot count hits of <SearchResult"):
            get_hits(result)
