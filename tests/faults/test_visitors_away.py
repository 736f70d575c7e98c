"""Visitors while Redis is away: the tables decide, and Redis learns of them when it is back."""

from __future__ import annotations

import signal

import pytest
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import DailyVisitors, MissedRecord, SeenVisitor
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.status import get_refused_hits
from tests.browsers import BROWSER
from tests.faults.conftest import hanging
from tests.servers import wait_until
from tests.tables import slot_sums
from tests.visitors.test_address_limit import request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rule(own_valkey, settings):
    def apply(repeat):
        options = {"repeat": repeat, "visitors": True}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}

    return apply


def visit(article, visitor):
    address = f"203.0.113.{visitor}"
    return article.record_hit(RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address))


def back(server):
    server.start()
    get_buffer.cache_clear()


def end_doubt(server, runs_late):
    """Let Redis run the command whose answer was lost, or lose it, and flush."""
    if runs_late:
        server.resume()
        wait_until(lambda: server.calls("evalsha") >= 2, "the late command")
    else:
        server.stop(signal.SIGKILL)
        server.start()
    flush_hits()


def refused():
    return {
        row.refusal: row.hits for row in get_refused_hits(first_day=day_of(), last_day=day_of())
    }


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_visitor_counts_once_without_redis(own_valkey, rule, article, repeat):
    rule(repeat)
    own_valkey.stop()

    assert [visit(article, 1).refusal for _ in range(3)] == [None, "repeat", "repeat"]
    assert visit(article, 2).total == 2
    assert refused() == {"repeat": 2}
    assert slot_sums([article]) == {article: 2}


def test_redis_is_told_who_came_meanwhile(own_valkey, rule, article):
    rule("daily")
    visit(article, 1)
    own_valkey.stop()
    for visitor in (2, 3, 3):
        visit(article, visitor)
    back(own_valkey)
    flush_hits()

    assert not SeenVisitor.objects.exists()
    assert [visit(article, visitor).refusal for visitor in (1, 2, 3, 4)] == ["repeat"] * 3 + [None]
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 4
    flush_hits()
    assert (DailyVisitors.objects.get().count, article.hits) == (4, 4)


@pytest.mark.usefixtures("endless_pauses")
@pytest.mark.parametrize("runs_late", [True, False])
@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_hit_in_doubt_counts_once(own_valkey, rule, article, repeat, runs_late):
    """Whether or not Redis runs the command whose answer was lost."""
    rule(repeat)
    visit(article, 1)
    with hanging(own_valkey):
        assert visit(article, 2).counted
        assert visit(article, 2).refusal == "repeat"
    assert "visitor" not in str(MissedRecord.objects.get(command_id__isnull=False).hits)
    end_doubt(own_valkey, runs_late)

    assert slot_sums([article]) == {article: 2}
    assert refused() == {"repeat": 1}
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 2


def test_refused_hits_are_counted_without_redis(own_valkey, rule, article):
    own_valkey.stop()
    hit = article.record_hit(RequestFactory().get("/"))

    assert (hit.refusal, hit.total) == ("bot", 0)
    assert refused() == {"bot": 1}
    assert not MissedRecord.objects.exists()


@pytest.mark.parametrize("runs_late", [True, False])
def test_refused_hit_in_doubt_is_counted_once(own_valkey, rule, article, runs_late):
    visit(article, 1)
    with hanging(own_valkey):
        assert article.record_hit(RequestFactory().get("/")).refusal == "bot"
    end_doubt(own_valkey, runs_late)

    assert refused() == {"bot": 1}
    assert slot_sums([article]) == {article: 1}


def test_visitors_are_read_from_the_tables_while_redis_is_away(own_valkey, rule, article, settings):
    rule("always")
    settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_KEY_ROTATION": "never"}
    visit(article, 1)
    visit(article, 2)
    flush_hits()
    own_valkey.stop()

    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 2
    visit(article, 3)
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 3


@pytest.fixture
def limit(own_valkey, settings):
    options = {"repeat": "daily", "per_address": 2}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}


def come(article, visitor):
    return article.record_hit(request_of(visitor)).refusal


@pytest.mark.usefixtures("limit")
def test_address_has_its_limit_without_redis_and_with_it_again(own_valkey, article):
    """The tables and Redis do not know of each other's."""
    assert [come(article, n) for n in range(3)] == [None, None, "address_limit"]
    own_valkey.stop()
    assert [come(article, n) for n in range(3, 6)] == [None, None, "address_limit"]
    own_valkey.start()
    get_buffer.cache_clear()
    flush_hits()

    assert come(article, 6) == "address_limit"
    flush_hits()
    assert refused() == {"address_limit": 3}
    assert slot_sums([article]) == {article: 4}


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("runs_late", [True, False])
def test_hit_in_doubt_uses_the_limit_up_once(own_valkey, article, runs_late):
    come(article, 1)
    with hanging(own_valkey):
        assert come(article, 2) is None
    assert "address" not in str(MissedRecord.objects.get(command_id__isnull=False).hits)
    end_doubt(own_valkey, runs_late)
    get_buffer.cache_clear()
    found = [come(article, n) for n in (3, 4)]
    flush_hits()

    # A hit that is told later has no address: Redis knows of it only if it ran the command.
    assert found == ([*["address_limit"] * 2] if runs_late else [None, "address_limit"])
    assert slot_sums([article]) == {article: 2 if runs_late else 3}
