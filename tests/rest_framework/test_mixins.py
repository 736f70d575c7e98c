"""HitCountRetrieveMixin counts the object that a view retrieves."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from rest_framework import generics, permissions
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.response import Response
from rest_framework.test import force_authenticate

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from django_hitcount.status import get_refused_hits
from tests.app.models import Article
from tests.redis_server import sends
from tests.rest_framework.api import ArticleView, ArticleViewSet, PrivateView, request

pytestmark = pytest.mark.django_db(transaction=True)

VIEW = ArticleViewSet.as_view({"get": "retrieve", "put": "update", "delete": "destroy"})


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


def test_counts_and_shows_the_hit(article):
    assert [VIEW(request(), pk=article.pk).data["hits"] for _ in range(3)] == [1, 2, 3]
    assert article.hits == 3


def test_shows_the_hit_that_waits_for_the_commit(article):
    """As with ATOMIC_REQUESTS, and as the tag on a page does."""
    with transaction.atomic():
        assert VIEW(request(), pk=article.pk).data["hits"] == 1
        assert VIEW(request(), pk=article.pk).data["hits"] == 1  # Nothing is in the tables yet.
    assert article.hits == 2


def test_does_not_show_a_hit_that_was_rolled_back(article):
    class Undone(ArticleViewSet):
        def retrieve(self, request, pk):
            with transaction.atomic():
                obj = self.get_object()
                transaction.set_rollback(True)
            return Response(self.get_serializer(obj).data)

    view = Undone.as_view({"get": "retrieve"})
    assert view(request(), pk=article.pk).data["hits"] == 0


def test_counts_and_shows_in_one_round_trip(redis_buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)
    get_hits(article, counter="downloads")
    with sends() as trips:
        assert VIEW(request(), pk=article.pk).data["hits"] == 2

    assert trips() == 2  # One records and has the hits. The other one reads the downloads.


def test_counts_once_per_request(article):
    class Twice(ArticleViewSet):
        def retrieve(self, request, *args, **kwargs):
            super().retrieve(request, *args, **kwargs)
            self.get_object()
            record_hit(self.get_object(), request._request, once_per_request=True)
            return super().retrieve(request, *args, **kwargs)

    Twice.as_view({"get": "retrieve"})(request(), pk=article.pk)

    assert article.hits == 1


def test_other_actions_count_nothing(article):
    ArticleViewSet.as_view({"get": "list"})(request())
    assert ArticleViewSet.as_view({"get": "title"})(request(), pk=article.pk).data == "Tea"
    VIEW(request("put", data={"title": "Coffee"}), pk=article.pk)
    assert article.hits == 0

    assert VIEW(request("delete"), pk=article.pk).status_code == 204


def test_view_that_finds_its_object_itself(article):
    class Own(ArticleViewSet):
        def get_object(self):
            return Article.objects.get(title=self.kwargs["title"])

    class OwnView(ArticleView):
        get_object = Own.get_object

    own = Own.as_view({"get": "retrieve", "put": "update"})
    assert own(request(), title="Tea").data["hits"] == 1
    assert own(request("put", data={"title": "Tea"}), title="Tea").data["hits"] == 1
    assert OwnView.as_view()(request(), title="Tea").data["downloads"] == 1
    assert article.hits == 1


def test_view_that_shows_its_object_itself(article):
    class Own(ArticleViewSet):
        def retrieve(self, request, pk):
            return Response(self.get_object().title)

    assert Own.as_view({"get": "retrieve"})(request(), pk=article.pk).data == "Tea"
    assert article.hits == 1


@pytest.mark.parametrize("method", ["put", "patch"])
def test_view_that_also_changes_objects_counts_what_it_shows(article, method):
    class Both(ArticleView, generics.RetrieveUpdateDestroyAPIView):
        pass

    view = Both.as_view()
    assert view(request(), pk=article.pk).data["downloads"] == 1
    view(request(method, data={"title": "Coffee"}), pk=article.pk)
    assert get_hits(article, counter="downloads") == 1


def test_permission_that_looks_at_the_object_counts_nothing(article):
    class Owns(permissions.BasePermission):
        def has_permission(self, request, view):
            return view.get_object().title == "Coffee"

    class Asked(ArticleViewSet):
        permission_classes = [Owns]

    assert Asked.as_view({"get": "retrieve"})(request(), pk=article.pk).status_code == 403
    assert article.hits == 0


def test_missing_object_counts_nothing(article):
    assert VIEW(request(), pk=article.pk + 1).status_code == 404
    assert article.hits == 0


def test_refusals_get_the_request_of_django(article):
    app = request(**{"User-Agent": "okhttp/4.12.0"})

    assert VIEW(app, pk=article.pk).data["hits"] == 0
    flush_hits()
    assert [(row.refusal, row.hits) for row in get_refused_hits(days=1)] == [("bot", 1)]


@pytest.mark.parametrize("client", ["okhttp/4.12.0", "axios/1.7.9", "node-fetch", ""])
@pytest.mark.parametrize("where", ["view", "counter"])
def test_native_clients_of_an_api_are_no_bots(article, settings, client, where):
    method = "django_hitcount.refusals.method"
    counters = {"views": {"refusals": [method]}, "downloads": {}}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    view = VIEW if where == "counter" else ArticleView.as_view()
    view(request(**{"User-Agent": client}), pk=article.pk)

    assert get_hits(article, counter="views" if where == "counter" else "downloads") == 1


def test_view_that_is_no_viewset(article):
    assert ArticleView.as_view()(request(), pk=article.pk).data["downloads"] == 1
    assert article.hits == 0


def test_request_without_permission_counts_nothing(article):
    asked = request()
    assert PrivateView.as_view()(asked, pk=article.pk).status_code in (401, 403)
    force_authenticate(asked, user=User.objects.create(username="ann"))
    assert PrivateView.as_view()(asked, pk=article.pk).data["downloads"] == 1


def test_refusals_know_who_is_logged_in_by_the_api(article, settings):
    """A token names the user, and no session."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": ["django_hitcount.refusals.staff"]}
    asked = request()
    force_authenticate(asked, user=User.objects.create(username="ann", is_staff=True))

    assert VIEW(asked, pk=article.pk).data["hits"] == 0
    assert VIEW(request(), pk=article.pk).data["hits"] == 1


def test_tag_in_a_template_of_the_api_counts_no_second_hit(article):
    """DRF gives the template its own request, which wraps that of Django."""

    class InTemplate(ArticleViewSet):
        renderer_classes = [TemplateHTMLRenderer]
        template_name = "article.html"

        def retrieve(self, request, *args, **kwargs):
            super().retrieve(request, *args, **kwargs)
            return Response({"article": Article.objects.get(pk=kwargs["pk"])})

    response = InTemplate.as_view({"get": "retrieve"})(request(), pk=article.pk)

    assert response.render().content == b"1\n"
    assert article.hits == 1
