"""What the tags print into a page that a cache keeps."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import RequestFactory, override_settings

import django_hitcount
from django_hitcount import beacon_token
from django_hitcount.recording import record_hit
from django_hitcount.refusals import refusal
from django_hitcount.testing import BrowserRequestFactory, override_hitcount
from tests.app.models import Article

pytestmark = pytest.mark.django_db

SCRIPT = '<script src="/static/django_hitcount/seen.js" data-url="/seen/" defer></script>'


def render(source: str, **values) -> str:
    return Template("{% load hitcount %}" + source).render(Context(values))


@pytest.fixture
def article():
    return Article.objects.create(title="Tea")


def test_page_gets_the_token_the_script_and_an_image(article):
    token = beacon_token(article)

    assert render("{% hit_beacon article %}", article=article) == (
        f'<span data-hit="{token}" hidden></span>{SCRIPT}'
        f'<noscript><img src="/seen/{token}.gif" alt="" width="1" height="1"></noscript>'
    )


def test_page_that_shows_numbers_gets_the_script_alone(article):
    assert render("{% hit_beacon %}") == SCRIPT
    assert render('{% beacon_token article show="hits" %}', article=article) == beacon_token(
        article, show="hits"
    )


def test_page_of_an_object_that_is_not_saved_gets_nothing():
    assert render("{% hit_beacon article %}{% beacon_token article %}", article=Article()) == ""


def test_preview_gets_nothing(article):
    request = BrowserRequestFactory().get("/")
    request.is_preview = True
    refusals = ["django_hitcount.refusals.previews"]

    with override_hitcount(REFUSALS=refusals):
        assert render("{% hit_beacon article %}", article=article, request=request) == ""
        request.is_preview = False
        assert SCRIPT in render("{% hit_beacon article %}", article=article, request=request)


def test_page_that_a_cache_gets_for_a_bot_counts_later_readers(article):
    """Only a preview is never shown to them."""
    request = RequestFactory(headers={"User-Agent": "Googlebot/2.1"}).get("/")

    assert record_hit(article, request).refusal == "bot"
    assert SCRIPT in render("{% hit_beacon article %}", article=article, request=request)


@refusal("preview", "It fails.")
def failing_preview(context):
    raise ZeroDivisionError


def test_error_in_a_refusal_does_not_break_the_page(article, caplog):
    request = BrowserRequestFactory().get("/")

    with override_hitcount(REFUSALS=[f"{__name__}.failing_preview"]):
        assert SCRIPT in render("{% hit_beacon article %}", article=article, request=request)
    assert "ZeroDivisionError" in caplog.text


@override_settings(ROOT_URLCONF="tests.listing_urls")
def test_address_that_is_missing_is_explained(article):
    with pytest.raises(ImproperlyConfigured, match=r'include\("django_hitcount.urls"\)'):
        render("{% hit_beacon article %}", article=article)


def test_script_is_small():
    path = Path(django_hitcount.__file__).parent / "static/django_hitcount/seen.js"

    assert len(gzip.compress(path.read_bytes())) <= 1_536
