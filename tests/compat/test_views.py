"""Views, URLs and models of django-hitcount."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, models
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from django.template import Context, Template
from django.test import AsyncClient, Client
from django.test.utils import isolate_apps
from django.urls import reverse

from django_hitcount.beacon import beacon_token
from django_hitcount.compat import models as compat
from django_hitcount.compat import views
from django_hitcount.compat.models import HitCount
from django_hitcount.compat.views import HitCountDetailView
from django_hitcount.reading import get_hits
from tests.app.models import Article, Photo, Plain
from tests.browsers import BROWSER
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/hitcount/hit/ajax/"
AJAX = {**BROWSER, "X-Requested-With": "XMLHttpRequest"}


@pytest.fixture
def article(rule) -> Article:
    rule("daily")
    return Article.objects.create(title="Tea")


def post(obj: models.Model, **more: str):
    """Send what the old script sends; the client insists on CSRF tokens."""
    client = Client(enforce_csrf_checks=True)
    return client.post(URL, {"hitcountPK": beacon_token(obj)}, headers={**AJAX, **more})


class TestJSONView:
    def test_hit_counts_once(self, article, settings):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.csrf.CsrfViewMiddleware"]
        assert reverse("hitcount:hit_ajax") == URL
        assert post(article).json() == {"hit_counted": True, "hit_message": "Hit counted"}
        assert post(article).json() == {
            "hit_counted": False,
            "hit_message": "Not counted: repeat",
        }
        assert get_hits(article) == 1

    def test_other_keys_count_too(self, buffer):
        photo = Photo.objects.create()
        assert post(photo).json()["hit_counted"]
        assert get_hits(photo) == 1

    def test_bots_do_not_count(self, article):
        assert post(article, **{"User-Agent": "Googlebot/2.1"}).json() == {
            "hit_counted": False,
            "hit_message": "Not counted: bot",
        }

    def test_what_is_no_token_is_a_bad_request(self, article, client):
        shown = beacon_token(article, show="hits")
        for pk in ("", "5", shown, beacon_token(article) + "x"):
            assert client.post(URL, {"hitcountPK": pk}, headers=AJAX).status_code == 400
        assert client.post(URL, headers=AJAX).status_code == 400
        assert get_hits(article) == 0

    def test_deleted_object_is_a_bad_request(self, article, client):
        token = beacon_token(article)
        article.delete()
        assert client.post(URL, {"hitcountPK": token}, headers=AJAX).status_code == 400

    def test_page_of_another_site_counts_nothing(self, article):
        assert post(article, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert get_hits(article) == 0

    def test_other_requests(self, article, client):
        assert client.post(URL, {"hitcountPK": beacon_token(article)}).status_code == 404
        assert client.get(URL).status_code == 404
        assert client.get(URL, headers=AJAX).json()["success"] is False
        assert client.get(URL, headers=AJAX)["Cache-Control"].startswith("max-age=0")

    def test_database_that_is_away(self, article, monkeypatch):
        def fail(*args):
            raise OperationalError("away")

        monkeypatch.setattr(views, "count_tokens", fail)
        assert post(article).status_code == 503


def show(article: Article, request, **attributes: object) -> str:
    text = (
        "{{ hitcount.total_hits }} {{ hitcount.hit_counted }} {{ hitcount.hit_message }} "
        "{% if hitcount.pk %}pk{% endif %}"
    )
    view = type("PostView", (HitCountDetailView,), {"model": Article, **attributes})()
    view.setup(request, pk=article.pk)
    view.object = article
    return Template(text).render(Context(view.get_context_data()))


class TestDetailView:
    def test_shows_and_counts_nothing(self, article):
        article.record_hit()
        assert show(Article.objects.get(), request_of(1)) == "1   pk"
        assert get_hits(article) == 1

    def test_counts_with_count_hit(self, article):
        assert show(article, request_of(1), count_hit=True) == "1 True Hit counted pk"
        assert show(article, request_of(1), count_hit=True) == "1 False Not counted: repeat pk"

    def test_tag_on_the_same_page_does_not_count_again(self, article, rule):
        rule("always")
        request = request_of(1)
        show(article, request, count_hit=True)
        tag = Template("{% load hitcount %}{% hit_count article %}")
        assert tag.render(Context({"article": article, "request": request})) == "1"


class TestModels:
    @isolate_apps("tests.app")
    def test_hit_count_of_an_object(self, buffer):
        # As in old code, where the mixin is no model: it may come after the model.
        class Post(Plain, compat.HitCountMixin):
            class Meta:
                proxy = True
                app_label = "app"

        post = Post.objects.create(name="x")
        assert views.HitCountMixin.hit_count(request_of(1), post.hit_count) == (
            True,
            "Hit counted",
        )
        text = "{{ post.hit_count.hits }}"
        assert Template(text).render(Context({"post": post})) == "1"
        assert post.hit_count.hits_in_last(days=1, hours=3) == 1
        assert HitCount.objects.get_for_object(post).hits == 1
        with pytest.raises(TypeError):
            post.hit_count.hits_in_last(years=1)

    def test_migrations_may_name_the_mixin(self):
        path, imports = MigrationWriter.serialize(compat.HitCountMixin)
        assert path == "django_hitcount.compat.models.HitCountMixin"
        assert imports == {"import django_hitcount.compat.models"}
        fields = [("id", models.BigAutoField(primary_key=True))]
        bases = (models.Model, compat.HitCountMixin)
        state = ProjectState()
        state.add_model(ModelState("app", "Old", fields, bases=bases))
        assert state.apps.get_model("app", "Old")(pk=1).hit_count.content_object.pk == 1


async def test_async_client(buffer, no_connection_of_the_thread_is_left):
    article = await Article.objects.acreate(title="Tea")
    token = await sync_to_async(beacon_token)(article)
    response = await AsyncClient().post(URL, {"hitcountPK": token}, headers=AJAX)
    assert response.json()["hit_counted"]
