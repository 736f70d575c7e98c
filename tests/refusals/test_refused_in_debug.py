"""In DEBUG, the console says why a hit does not count."""

from __future__ import annotations

import logging

import pytest
from django.db import transaction
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer, settings) -> Article:
    settings.DEBUG = True
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"repeat": "daily"}}}
    return Article.objects.create(title="Tea")


@pytest.fixture
def said(caplog):
    """The lines that a console shows by default: warnings and errors."""
    return lambda: [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def get(**headers: str):
    return RequestFactory(headers=headers).get("/tea/")


def test_curl_is_a_bot(article, said):
    record_hit(article, get(**{"user-agent": "curl/8.5.0"}))

    (line,) = said()
    assert line == (
        "1 of 'views' not counted (GET /tea/, User-Agent 'curl/8.5.0'), refusal 'bot': "
        "The user agent is that of a bot, or empty."
    )


def test_so_is_no_user_agent(article, said):
    record_hit(article, get())

    assert "User-Agent ''), refusal 'bot'" in said()[0]


def test_repeat(article, said):
    record_hit(article, get(**BROWSER))
    assert said() == []

    record_hit(article, get(**BROWSER))
    (line,) = said()
    assert line.startswith("1 of 'views' not counted (GET /tea/, User-Agent 'Mozilla")
    assert line.endswith("), refusal 'repeat': The visitor has been counted already.")


def test_hit_in_a_transaction_is_refused_once(article, said):
    with transaction.atomic():
        record_hit(article, get())

    assert ["refusal 'bot'" in line for line in said()] == [True]


def test_list_is_one_line_for_each_reason(article, said):
    articles = [article, Article.objects.create(title="Cake")]
    request = get(**BROWSER)
    record_hits(articles, request, refusals=[lambda context: context.obj in articles])

    (line,) = said()
    assert line.startswith("2 of 'views' not counted (GET /tea/, ")
    assert line.endswith("refusal 'caller': The view that recorded the hit said so.")


def test_template_without_a_request(article, said):
    Template("{% load hitcount %}{% hit_count a %}").render(Context({"a": article}))

    assert "refusal 'no_request': The template has no request: list the" in said()[0]


def test_preview(article, said):
    record_hit(Article(), get(**BROWSER), once_per_request=True)

    assert said()[0].endswith("refusal 'unsaved': The object is not saved: a preview.")


def test_user_agent_is_cut(article, said):
    record_hit(article, get(**{"user-agent": "curl/" + "8" * 5000}))

    assert len(said()[0]) < 400


def test_nothing_is_said_of_hits_that_count(article, said):
    record_hit(article, get(**BROWSER))
    record_hit(article)

    assert said() == []


def test_nothing_is_said_without_debug(article, said, settings):
    settings.DEBUG = False
    record_hit(article, get())
    record_hit(article, get(**BROWSER))
    record_hit(article, get(**BROWSER))

    assert said() == []
