"""The server of the database is paused or stopped, with the timeouts that the docs advise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount import outages
from django_hitcount.buffers import get_buffer
from django_hitcount.checks import ADVISED
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.servers import Server, wait_until
from tests.waits import waits_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="There is no server"),
]

SLACK_SECONDS = 1.5
"""The work of a page. Without timeouts, pages wait for minutes."""


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


def show_page(article: Article, *, tags: int = 1, most_seconds: float) -> None:
    template = Template("{% load hitcount %}" + "{% hit_count article %}" * tags)
    request = RequestFactory(headers=BROWSER).get("/")
    with waits_for(0, most_seconds + SLACK_SECONDS):
        template.render(Context({"article": article, "request": request}))


def record_hit_in_time(article: Article) -> None:
    """On a busy machine, a new connection may take longer than the timeout."""
    guard = get_buffer()._breaker
    wait_until(lambda: guard.try_now() or record_hit(article).counted, "a hit")


@pytest.mark.usefixtures("endless_pauses")
@pytest.mark.parametrize("is_connected", [False, True])
def test_frozen_database_costs_a_page_one_timeout(article, advised, database_server, is_connected):
    if is_connected and "read_timeout" not in advised:
        pytest.skip("psycopg has no timeout for a query that is under way")
    record_hit_in_time(article)
    limit = advised["read_timeout"] if is_connected else advised["connect_timeout"]
    if not is_connected:  # As Django does after each request, unless CONN_MAX_AGE says otherwise.
        connection.close()

    with frozen(database_server):
        show_page(article, tags=3, most_seconds=limit)
        # Reads have another breaker.
        show_page(article, most_seconds=advised["connect_timeout"])
        show_page(article, most_seconds=0)


def test_database_that_is_back_takes_hits_within_a_second(article, advised, database_server):
    """However long it was away: it refuses at once, so to ask costs a page nothing."""
    record_hit_in_time(article)
    database_server.stop()
    try:
        guard = get_buffer()._breaker
        wait_until(lambda: is_down_for_long(article, guard), "the second failure")
        pause_seconds = guard._paused_until - time.monotonic()
    finally:
        database_server.start()

    assert pause_seconds <= outages.LONGEST_PAUSE_SECONDS
    wait_until(lambda: record_hit(article).counted, "the first hit")
    assert record_hit(article).counted


def is_down_for_long(article: Article, guard: outages.Breaker) -> bool:
    assert not record_hit(article).counted
    return guard._pause >= outages.LONGEST_PAUSE_SECONDS
