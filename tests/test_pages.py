"""Template tags and views."""

from __future__ import annotations

import pytest
from django.db import connections
from django.template import Context, Template, TemplateSyntaxError
from django.test import Client, RequestFactory

from django_hitcount.exceptions import UnsavedObject
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitSlot
from django_hitcount.reading import get_hits
from django_hitcount.recording import Hit, record_hit
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


def render(source: str, article: object, **context: object) -> str:
    return Template("{% load hitcount %}" + source).render(Context({"a": article, **context}))


@pytest.fixture
def request_():
    return RequestFactory(headers=BROWSER).get("/")


class TestHitCount:
    def test_counts_and_prints_the_total(self, article, request_):
        assert render("{% hit_count a %}", article, request=request_) == "1"

    def test_counts_once_however_often_it_is_rendered(self, article, request_):
        source = "{% hit_count a %}{% for i in 'xyz' %}{% hit_count a %}{% endfor %}"

        assert render(source, article, request=request_) == "1111"
        assert render("{% hit_count a %}", article, request=request_) == "1"
        assert article.hits == 1

    def test_prints_the_total_without_a_request(self, article):
        article.record_hit()
        fresh = Article.objects.get()

        assert render("{% hit_count a %}", fresh) == "1"
        assert fresh.hits == 1

    @pytest.mark.parametrize("method", ["head", "post"])
    def test_prints_the_total_and_counts_nothing_but_get(self, article, method):
        request = getattr(RequestFactory(headers=BROWSER), method)("/")

        assert render("{% hit_count a %}", article, request=request) == "0"
        assert article.hits == 0

    def test_counter_and_variable(self, article, request_):
        source = "{% hit_count a counter='downloads' as n %}[{{ n }}]"

        assert render(source, article, request=request_) == "[1]"
        assert (get_hits(article, counter="downloads"), article.hits) == (1, 0)

    def test_wrong_object_is_an_error_that_names_it(self, article, request_):
        with pytest.raises(ValueError, match="Cannot count hits of ''"):
            render("{% hit_count nobody %}", article, request=request_)


@pytest.mark.parametrize("tag", ["hit_count", "hits", "visitors"])
def test_counter_without_its_name_is_an_error(tag):
    with pytest.raises(TemplateSyntaxError, match="too many positional arguments"):
        Template("{% load hitcount %}{% " + tag + " a 'downloads' %}")


class TestUnsavedObject:
    """A preview: it has no row yet, or its row is of another version."""

    @pytest.mark.parametrize("tag", ["hit_count", "hits", "visitors"])
    @pytest.mark.parametrize("pk", [None, 7])
    def test_tags_print_nothing_and_count_nothing(self, article, request_, tag, pk):
        preview = Article(pk=pk, title="Draft")

        assert render("[{% " + tag + " a %}]", preview, request=request_) == "[]"
        flush_hits()
        assert not HitSlot.objects.exists()

    def test_hits_print_nothing(self, article):
        assert render("[{{ a.hits }}]", Article(title="Draft")) == "[]"

    def test_view_counts_nothing(self, article, request_):
        assert record_hit(Article(), request_, once_per_request=True) == Hit(False, "unsaved", None)

    def test_recording_one_outside_of_a_page_is_an_error(self):
        with pytest.raises(UnsavedObject, match="Save the object first"):
            record_hit(Article())


class TestHitTotal:
    def test_prints_and_counts_nothing(self, article, request_):
        article.record_hit()

        assert render("{% hits a %}{% hits a %}", article, request=request_) == "11"
        assert article.hits == 1

    def test_counter_and_variable(self, article):
        article.record_hit(counter="downloads", amount=4)

        assert render("{% hits a counter='downloads' as n %}[{{ n }}]", article) == "[4]"


class TestViews:
    def test_detail_mixin_counts_without_a_tag(self, article):
        pages = [Client(headers=BROWSER).get(f"/detail/{article.pk}/").content for _ in range(2)]

        assert pages == [b"1\n", b"2\n"]
        assert article.hits == 2

    def test_mixin_and_tag_on_one_page_count_once(self, article):
        assert Client(headers=BROWSER).get(f"/both/{article.pk}/").content == b"1 1 1\n"
        assert article.hits == 1

    def test_head_counts_nothing(self, article):
        assert Client(headers=BROWSER).head(f"/detail/{article.pk}/").status_code == 200
        assert article.hits == 0

    def test_missing_object_counts_nothing(self, article):
        assert Client(headers=BROWSER).get(f"/detail/{article.pk + 1}/").status_code == 404
        flush_hits()
        assert article.hits == 0

    def test_view_that_rolls_back_counts_nothing(self, article):
        assert Client(headers=BROWSER).get(f"/rolls-back/{article.pk}/").status_code == 404
        assert article.hits == 0

    def test_atomic_requests(self, article, settings, monkeypatch):
        monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
        with pytest.raises(ZeroDivisionError):
            Client(headers=BROWSER).get(f"/fails/{article.pk}/")
        assert article.hits == 0

        assert Client(headers=BROWSER).get(f"/articles/{article.pk}/").content == b"1\n"
        assert article.hits == 1

    def test_view_in_a_transaction_shows_its_hit_and_counts_it(self, article):
        assert Client(headers=BROWSER).get(f"/atomic/{article.pk}/").content == b"1\n"
        assert article.hits == 1
        assert Client(headers=BROWSER).get(f"/atomic/{article.pk}/").content == b"2\n"

    def test_async_view_counts(self, article):
        assert Client(headers=BROWSER).get(f"/async/{article.pk}/").content == b"1"
        assert article.hits == 1
