"""Badges: the hits of an object as an image and as JSON, for pages of other sites."""

from __future__ import annotations

from unittest import mock
from xml.etree import ElementTree

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import NoReverseMatch, include, path, reverse
from django.utils import translation

from django_hitcount import beacon, beacon_token
from django_hitcount.badges import draw_badge
from django_hitcount.recording import record_hit
from tests.app.models import Article, Page, Photo
from tests.visiting import visit

pytestmark = [pytest.mark.django_db(transaction=True)]

urlpatterns = [path("badges/", include("django_hitcount.badges"))]


@pytest.fixture
def article(rule, settings) -> Article:
    rule("daily", visitors=True)
    settings.ROOT_URLCONF = __name__
    return Article.objects.create(title="Tea")


def url_of(obj, kind="svg", **of_token: object) -> str:
    token = beacon_token(obj, **{"show": "hits", **of_token})
    return reverse(f"django_hitcount_badges:{kind}", args=[token])


def texts_of(svg: bytes) -> list[str]:
    return [str(node.text) for node in ElementTree.fromstring(svg).findall(".//{*}text")]


def test_image_shows_hits(article, client):
    record_hit(article, amount=1234)
    response = client.get(url_of(article))
    assert response["Content-Type"] == "image/svg+xml"
    assert texts_of(response.content) == ["views", "1.2K"]
    record_hit(article, amount=1_000_000)
    assert texts_of(client.get(url_of(article)).content) == ["views", "1M"]


def test_json_shows_hits_and_visitors(article, client):
    visit(article, [1, 2])
    record_hit(article, amount=8)
    assert client.get(url_of(article, "json")).json() == {"label": "views", "number": 10}
    visitors = url_of(article, "json", show="visitors")
    assert client.get(visitors).json() == {"label": "visitors", "number": 2}


@pytest.mark.parametrize("make", [Photo, lambda: Page(path="/a b/æ.svg")], ids=["uuid", "text"])
def test_other_keys(article, client, make):
    obj = make()
    obj.save(force_insert=True)
    record_hit(obj)
    assert client.get(url_of(obj, "json")).json()["number"] == 1


def test_label(article, client):
    for label, shown in (("Aufrufe", "Aufrufe"), ("<b>&", "<b>&"), ("a\x00", "views")):
        response = client.get(url_of(article), {"label": label})
        assert texts_of(response.content) == [shown, "0"]
    response = client.get(url_of(article), {"label": "x" * 500})
    assert len(texts_of(response.content)[0]) == 40


def test_answer_may_be_cached_and_shown_by_other_sites(article, client):
    for kind in ("svg", "json"):
        first = client.get(url_of(article, kind))
        assert first["Cache-Control"] == "public, max-age=300"
        assert first["Access-Control-Allow-Origin"] == "*"
        assert not first.cookies
        assert not first.has_header("Vary")

        again = client.get(url_of(article, kind), headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again["Cache-Control"] == first["Cache-Control"]
        assert again["ETag"] == first["ETag"]
        assert again["Access-Control-Allow-Origin"] == "*"

        record_hit(article)
        changed = client.get(url_of(article, kind), headers={"If-None-Match": first["ETag"]})
        assert changed.status_code == 200


def test_language_of_the_reader_changes_nothing(article, settings, client):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    record_hit(article, amount=1234)
    with translation.override(None):  # The middleware leaves the language of the last request.
        first, other = [
            client.get(url_of(article), headers={"Accept-Language": language}).content
            for language in ("en", "de")
        ]
    assert first == other


def test_nothing_is_counted(article, client):
    client.get(url_of(article))
    assert article.hits == 0


def test_other_tokens_are_not_found(article, client, django_assert_num_queries):
    hit = beacon_token(article)
    url = url_of(article)
    with django_assert_num_queries(0):
        for wrong in (hit, hit + "x", "x"):
            for kind in ("svg", "json"):
                assert client.get(f"/badges/{wrong}.{kind}").status_code == 404
    assert client.post(url).status_code == 405
    assert client.head(url).status_code == 200


@pytest.mark.parametrize("away", ["content_type_id_of", "read_numbers"])
def test_number_that_cannot_be_read(article, client, monkeypatch, away):
    """A process that has just started does not know the content type of the model either."""
    url = url_of(article)
    monkeypatch.setattr(beacon, away, mock.Mock(side_effect=OperationalError("gone away")))
    response = client.get(url)
    assert response.status_code == 503
    assert not response.has_header("Cache-Control")


def test_widths_fit_the_texts():
    svg = ElementTree.fromstring(draw_badge("views", 1_234_567))
    rect, _, group = svg
    label, text = group
    assert svg.get("width") == rect.get("width") == str(7 * 5 + 7 * 4 + 24)
    assert int(text.get("x")) + int(text.get("textLength")) + 6 == int(svg.get("width"))
    assert int(label.get("x")) + int(label.get("textLength")) < int(text.get("x"))


def test_there_are_no_badges_by_default(db):
    with pytest.raises(NoReverseMatch):
        reverse("django_hitcount_badges:svg", args=["x"])
    assert Client().get("/badges/x.svg").status_code == 404
