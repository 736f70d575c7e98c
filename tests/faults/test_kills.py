"""A flusher or compactor is killed at every single step; the next one makes it good."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.db import connections

from django_hitcount import slots
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.compaction import compact
from django_hitcount.flushing import flush
from django_hitcount.recording import record_hits
from django_hitcount.tables import FlushedBatch, HitSlot
from django_hitcount.totals import get_totals
from tests import children
from tests.app.models import Article
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


def dies_before(owner: Any, name: str, *, call: int = 1) -> Callable[[], Any]:
    """A patch under which the given call of ``owner.name`` kills the process first."""
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
    """A patch under which ``owner.name`` kills the process when it has done its work."""
    original = getattr(owner, name)

    def dying(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        children.die()
        return result

    return lambda: mock.patch.object(owner, name, dying)


def wrapper() -> Any:
    return type(connections["default"])


FLUSH_STEPS = {
    "before the claim": lambda: dies_before(RedisBuffer, "claim"),
    "after the claim, before the batch is read": lambda: dies_before(RedisBuffer, "_scan"),
    "while the batch is read": lambda: dies_before(RedisBuffer, "_scan", call=2),
    "after the claim, before the ledger": lambda: dies_before(FlushedBatch, "save"),
    "after the ledger": lambda: dies_after(FlushedBatch, "save"),
    "before the totals": lambda: dies_before(slots, "add_totals"),
    "after the totals, before the days": lambda: dies_before(slots, "add_daily"),
    "after the days": lambda: dies_after(slots, "add_daily"),
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
        assert children.run(flush) == -signal.SIGKILL

    assert set(get_totals(articles).values()) == {1}
    assert {hit.total for hit in record_hits(articles)} == {2}
    flush()
    flush()
    assert slot_sums(articles) == dict.fromkeys(articles, 2)
    assert daily_sums(articles) == dict.fromkeys(articles, 2)
    assert set(get_totals(articles).values()) == {2}
    assert HitSlot.objects.count() <= 2 * len(articles)


@pytest.mark.parametrize("step", FLUSH_STEPS)
def test_totals_loaded_while_a_dead_flush_lies_there_are_exact(redis, redis_buffer, articles, step):
    record_hits(articles)
    with FLUSH_STEPS[step]()():
        assert children.run(flush) == -signal.SIGKILL

    redis.delete(*redis.keys("hitcount:*:total:*"))

    assert set(get_totals(articles).values()) == {1}
    flush()
    assert set(get_totals(articles).values()) == {1}
    redis.delete(*redis.keys("hitcount:*:total:*"))
    assert set(get_totals(articles).values()) == {1}


COMPACT_STEPS = {
    "before slot 0 is written": lambda: dies_before(slots, "upsert"),
    "after slot 0 is written, before the others are deleted": lambda: dies_after(slots, "upsert"),
    "before the COMMIT": lambda: dies_before(wrapper(), "_commit"),
    "after the COMMIT": lambda: dies_after(wrapper(), "_commit"),
}


@pytest.mark.parametrize("step", COMPACT_STEPS)
def test_compaction_killed_at_a_step_changes_no_sum(articles, step):
    for _ in range(5):
        record_hits(articles)
    patch = COMPACT_STEPS[step]()

    with patch():
        assert children.run(compact) == -signal.SIGKILL

    assert slot_sums(articles) == dict.fromkeys(articles, 5)
    compact()
    assert slot_sums(articles) == daily_sums(articles) == dict.fromkeys(articles, 5)
    assert not HitSlot.objects.filter(slot__gt=0).exists()
