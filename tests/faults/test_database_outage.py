"""The server of the database is paused or stopped, with the timeouts that the docs advise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.db.timeouts import ADVISED
from django_hitcount.outages import breaker
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.servers import Server, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="There is no server"),
]

SLACK_SECONDS = 1.5
"""Enough for a busy machine. Without timeouts, pages wait for minutes."""


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def advised(article, monkeypatch) -> Iterator[dict]:
    options = dict(ADVISED[connection.vendor])
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    connection.close()
    yield options
    connection.close()


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()
        connection.close()


def seconds_of_page(article: Article, tags: int = 1) -> float:
    template = Template("{% load hitcount %}" + "{% hit_count article %}" * tags)
    request = RequestFactory(headers=BROWSER).get("/")
    start = time.monotonic()
    template.render(Context({"article": article, "request": request}))
    return time.monotonic() - start


@pytest.mark.parametrize("is_connected", [False, True])
def test_frozen_database_costs_a_page_one_timeout(
    article, advised, database_server, is_connected, monkeypatch
):
    # No second try during the test, on a slow machine either.
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", breaker.LONGEST_PAUSE_IF_SLOW_SECONDS)
    if is_connected and "read_timeout" not in advised:
        pytest.skip("psycopg has no timeout for a query that is under way")
    assert record_hit(article).counted
    limit = advised["read_timeout"] if is_connected else advised["connect_timeout"]
    if not is_connected:  # As Django does after each request, unless CONN_MAX_AGE says otherwise.
        connection.close()

    with frozen(database_server):
        assert seconds_of_page(article, tags=3) < limit + SLACK_SECONDS
        # Reads have another breaker.
        assert seconds_of_page(article) < advised["connect_timeout"] + SLACK_SECONDS
        assert seconds_of_page(article) < SLACK_SECONDS


def test_database_that_is_back_takes_hits_within_a_second(article, advised, database_server):
    """However long it was away: it refuses at once, so to ask costs a page nothing."""
    assert record_hit(article).counted
    database_server.stop()
    try:
        guard = get_buffer()._breaker
        wait_until(lambda: is_down_for_long(article, guard), "the second failure")
    finally:
        database_server.start()
    back_at = time.monotonic()
    wait_until(lambda: record_hit(article).counted, "the first hit")

    assert time.monotonic() - back_at < breaker.LONGEST_PAUSE_SECONDS + SLACK_SECONDS
    wait_until(lambda: record_hit(article).counted, "the second hit", seconds=0)


def is_down_for_long(article: Article, guard: breaker.Breaker) -> bool:
    assert not record_hit(article).counted
    return guard._pause >= breaker.LONGEST_PAUSE_SECONDS
