"""Tokens say what a cached page may count and show."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.test import override_settings

from django_hitcount import beacon_token
from django_hitcount.beacon import HIT, HITS, VISITORS, Token, read_token
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.testing import override_hitcount
from tests.app.models import Article, Page, Photo

pytestmark = pytest.mark.django_db

counting_visitors = override_hitcount(
    COUNTERS={"views": {"visitors": True}, "downloads": {}, "plays": {}}
)


@pytest.mark.parametrize("model", [Article, Photo, Page])
def test_token_says_what_it_allows(model):
    obj = model.objects.create(**({"path": "/tea/ü:1/"} if model is Page else {}))

    with counting_visitors:
        found = [
            read_token(beacon_token(obj)),
            read_token(beacon_token(obj, counter="downloads", show="hits")),
            read_token(beacon_token(obj, show="visitors", days=7)),
        ]

    key = str(obj.pk)
    assert found == [
        Token(HIT, model, key, "views", 0),
        Token(HITS, model, key, "downloads", 0),
        Token(VISITORS, model, key, "views", 7),
    ]


def test_token_never_changes_and_needs_no_escapes_in_an_address():
    article = Article.objects.create(title="Tea")

    assert beacon_token(article) == beacon_token(Article.objects.get())
    assert re.fullmatch(r"[A-Za-z0-9_:-]+", beacon_token(article))


def test_token_of_an_old_secret_key_is_valid():
    article = Article.objects.create(title="Tea")
    token = beacon_token(article)

    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=[]):
        assert read_token(token) is None
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
        assert read_token(token) == Token(HIT, Article, str(article.pk), "views", 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: "x" + token,
        lambda token: token.replace(":", ""),
        lambda token: token + "\ud800",
        lambda token: "\0" * 10_000,
        lambda token: ":" + token,
    ],
)
def test_changed_token_is_refused(change):
    assert read_token(change(beacon_token(Article.objects.create(title="Tea")))) is None


def test_token_of_a_counter_that_is_gone_is_refused():
    article = Article.objects.create(title="Tea")
    with counting_visitors:
        tokens = [beacon_token(article, counter="plays"), beacon_token(article, show="visitors")]

    assert [read_token(token) for token in tokens] == [None, None]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"counter": "likes"}, "likes"),
        ({"show": "likes"}, "likes"),
        ({"show": "visitors"}, "'views'"),
        ({"days": 0}, "0"),
        ({"days": 9999}, "9999"),
        ({"days": 7, "show": "hits"}, "Invalid days: 7. They are for show='visitors'"),
    ],
)
def test_wrong_argument_is_named(options, text):
    with pytest.raises(InvalidArgument, match=text):
        beacon_token(Article.objects.create(title="Tea"), **options)


def test_unsaved_object_has_no_token():
    with pytest.raises(UnsavedObject):
        beacon_token(Article(title="Tea"))
