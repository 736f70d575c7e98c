"""A flusher or compactor is killed at each step; the next one completes its work."""

from __future__ import annotations

import datetime
import signal
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.db import connections
from django.db.backends.utils import CursorWrapper
from django.test import RequestFactory

from django_hitcount.buffers.redis import RedisBuffer, claiming
from django_hitcount.counters.days import day_of
from django_hitcount.db import daily_visitors, folding, ledger, slots, sql
from django_hitcount.db.daily_visitors import fold_closed_days
from django_hitcount.db.tables import DailyVisitors, HitSlot, SeenVisitor
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from django_hitcount.status import get_refused_hits
from tests import children
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.sessions import wait_for_transactions_of_the_dead
from tests.tables import daily_sums, slot_sums

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis"),
]


def dies_before(owner: Any, name: str, *, call: int = 1) -> Callable[[], Any]:
    """A patch that kills the process before the given call of ``owner.name``."""
    original = getattr(owner, name)
    calls = 0

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            children.die()
        return original(*args, **kwargs)

    return lambda: mock.patch.object(owner, name, dying)


def dies_after(owner: Any, name: str) -> Callable[[], Any]:
    """A patch that kills the process after ``owner.name`` has done its work."""
    original = getattr(owner, name)

    def dying(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        children.die()
        return result

    return lambda: mock.patch.object(owner, name, dying)


def dies_at_statement(words: str, *, after: bool) -> Callable[[], Any]:
    """A patch that kills the process before or after a statement that has these words."""
    original = CursorWrapper.execute

    def dying(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        if words in sql and not after:
            children.die()
        result = original(self, sql, params)
        if words in sql:
            children.die()
        return result

    return lambda: mock.patch.object(CursorWrapper, "execute", dying)


def wrapper() -> Any:
    return type(connections["default"])


FLUSH_STEPS = {
    "before the claim": lambda: dies_before(RedisBuffer, "claim"),
    "after the claim, before the batch is read": lambda: dies_before(claiming, "read"),
    "while the batch is read": lambda: dies_before(claiming._Fields, "add"),
    "after the claim, before the ledger": lambda: dies_before(ledger, "add_batch"),
    "after the ledger": lambda: dies_after(ledger, "add_batch"),
    "before the totals": lambda: dies_before(slots, "add_totals"),
    "after the totals, before the days": lambda: dies_before(slots, "add_daily"),
    "after the days": lambda: dies_after(slots, "add_daily"),
    "before the refused hits": lambda: dies_before(slots, "add_refused"),
    "before the visitors": lambda: dies_before(daily_visitors, "write_sketches"),
    "after the visitors": lambda: dies_after(daily_visitors, "write_sketches"),
    "before the COMMIT": lambda: dies_before(wrapper(), "_commit"),
    "after the COMMIT": lambda: dies_after(wrapper(), "_commit"),
    "before the settle": lambda: dies_before(RedisBuffer, "settle"),
    "after the settle": lambda: dies_after(RedisBuffer, "settle"),
}


@pytest.fixture
def articles():
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(30))


@pytest.mark.parametrize("step", FLUSH_STEPS)
def test_flush_killed_at_a_step_loses_and_doubles_nothing(redis_buffer, articles, step):
    """Also while the batch is left lying: totals stay exact, and new hits are taken in."""
    record_hits(articles)
    patch = FLUSH_STEPS[step]()

    with patch():
        assert children.run(flush_hits) == -signal.SIGKILL

    assert set(get_hits(articles).values()) == {1}
    assert {hit.total for hit in record_hits(articles)} == {2}
    flush_hits()
    flush_hits()
    assert slot_sums(articles) == dict.fromkeys(articles, 2)
    assert daily_sums(articles) == dict.fromkeys(articles, 2)
    assert set(get_hits(articles).values()) == {2}
    assert HitSlot.objects.count() <= 2 * len(articles)


@pytest.mark.parametrize("step", FLUSH_STEPS)
def test_visitors_and_refused_hits_survive_a_killed_flush(redis_buffer, articles, settings, step):
    options = {"repeat": "daily", "visitors": True}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    first, second = (
        RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{n}") for n in (1, 2)
    )
    for request in (first, first, RequestFactory().get("/")):
        record_hits(articles, request)

    with FLUSH_STEPS[step]()():
        assert children.run(flush_hits) == -signal.SIGKILL

    record_hits(articles, second)
    flush_hits()
    flush_hits()
    assert slot_sums(articles) == dict.fromkeys(articles, 2)
    counts = [*DailyVisitors.objects.values_list("count", flat=True)]
    assert len(counts) == len(articles)
    assert sum(counts) >= 2 * len(articles) - 2  # Two may share a register of their sketch.
    refused = {
        row.refusal: row.hits for row in get_refused_hits(first_day=day_of(), last_day=day_of())
    }
    assert refused == {"repeat": len(articles), "bot": len(articles)}


FOLD_STEPS = {
    "before the count is written": lambda: dies_before(sql, "insert_or_add"),
    "after the count is written, before the rows are deleted": lambda: dies_after(
        sql, "insert_or_add"
    ),
    "before the COMMIT": lambda: dies_before(wrapper(), "_commit", call=1),
    "after the COMMIT": lambda: dies_after(wrapper(), "_commit"),
}


@pytest.mark.parametrize("step", FOLD_STEPS)
def test_fold_of_closed_days_killed_at_a_step_changes_no_count(articles, settings, step):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    day = day_of() - datetime.timedelta(days=5)
    for n in range(3):
        request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{n}")
        record_hits(articles[:5], request, at=day)
    patch = FOLD_STEPS[step]()

    with patch():
        assert children.run(lambda: fold_closed_days(piece_size=4)) == -signal.SIGKILL

    assert [article.get_visitors(first_day=day, last_day=day) for article in articles[:5]] == [
        3
    ] * 5
    assert sum(fold_closed_days(piece_size=4)) >= 11
    assert [article.get_visitors(first_day=day, last_day=day) for article in articles[:5]] == [
        3
    ] * 5
    assert not SeenVisitor.objects.exists()


@pytest.mark.parametrize("step", FLUSH_STEPS)
def test_totals_loaded_while_a_dead_flush_lies_there_are_exact(redis, redis_buffer, articles, step):
    record_hits(articles)
    with FLUSH_STEPS[step]()():
        assert children.run(flush_hits) == -signal.SIGKILL

    redis.delete(*redis.keys("hitcount:*:total:*"))

    assert set(get_hits(articles).values()) == {1}
    flush_hits()
    assert set(get_hits(articles).values()) == {1}
    redis.delete(*redis.keys("hitcount:*:total:*"))
    assert set(get_hits(articles).values()) == {1}


COMPACT_STEPS = {
    "before rows are folded": lambda: dies_before(folding, "fold_rows"),
    "after rows are folded": lambda: dies_after(folding, "fold_rows"),
    "before the hits of models are written": lambda: dies_before(slots, "add_to_models"),
    "after the hits of models are written": lambda: dies_after(slots, "add_to_models"),
    "before the COMMIT": lambda: dies_before(wrapper(), "_commit"),
    "after the COMMIT": lambda: dies_after(wrapper(), "_commit"),
    "before slot 0 is written": lambda: dies_at_statement("INSERT INTO", after=False),
    "before the others are deleted": lambda: dies_at_statement("DELETE", after=False),
    "after the others are deleted": lambda: dies_at_statement("DELETE", after=True),
}


@pytest.mark.parametrize("step", COMPACT_STEPS)
def test_compaction_killed_at_a_step_changes_no_sum(articles, step):
    for _ in range(5):
        record_hits(articles)
    patch = COMPACT_STEPS[step]()

    with patch():
        assert children.run(compact) == -signal.SIGKILL
    wait_for_transactions_of_the_dead()

    assert slot_sums(articles) == dict.fromkeys(articles, 5)
    compact()
    assert slot_sums(articles) == daily_sums(articles) == dict.fromkeys(articles, 5)
    assert not HitSlot.objects.filter(slot__gt=0).exists()
