"""The visitors that a page shows when Redis goes back in time, or was away."""

from __future__ import annotations

import signal

import pytest
from django.template import Context, Template

from django_hitcount.buffers import get_buffer
from django_hitcount.maintenance.flushing import flush_hits
from tests.redis_server import sends
from tests.visiting import is_about, request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)

SOURCE = "{% load hitcount %}{% visitors a %} {% visitors a days=7 %}"


@pytest.fixture
def rule(own_valkey, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}


def shown(article) -> tuple[int, int]:
    today, week = Template(SOURCE).render(Context({"a": article})).split()
    return int(today), int(week)


def restart(server) -> None:
    """Kill the server, and start it with the last snapshot."""
    server.stop(signal.SIGKILL)
    server.start()
    get_buffer.cache_clear()


@pytest.mark.parametrize("is_shown_before", [False, True])
def test_older_snapshot_does_not_show_fewer(own_valkey, rule, article, is_shown_before):
    visit(article, range(5))
    shown(article)
    own_valkey.ask("SAVE")
    visit(article, range(5, 12))
    before = shown(article)
    flush_hits()
    restart(own_valkey)

    if is_shown_before:
        assert shown(article) == before
    article.record_hit(request_of(1))
    assert shown(article) == before
    with sends() as sent:
        shown(article)
    assert sent() == 2


def test_visitors_who_came_while_redis_was_away_are_shown(own_valkey, rule, article):
    visit(article, range(3))
    shown(article)
    flush_hits()
    own_valkey.stop()
    visit(article, range(3, 9))
    assert is_about(9, shown(article)[0])
    own_valkey.start()
    get_buffer.cache_clear()

    for _ in range(2):
        visit(article, [3])
        assert shown(article)[0] >= 7
    flush_hits()
    assert is_about(9, shown(article)[0])


def test_page_shows_the_tables_while_redis_is_away(own_valkey, rule, article):
    visit(article, range(3))
    before = shown(article)
    flush_hits()
    own_valkey.stop()

    assert shown(article) == before
