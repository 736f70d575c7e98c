"""A flush whose batch Redis loses: the totals that lack it do not stay."""

from __future__ import annotations

from unittest import mock

import pytest

from django_hitcount import get_hits, record_hit
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.db import ledger
from django_hitcount.db.tables import LastBatch
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import flush_hits
from tests import children
from tests.app.models import Article

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_buffer")]


@pytest.fixture
def article(redis):
    """It has two hits in the tables, and one in Redis."""
    article = Article.objects.create(title="Tea")
    record_hit(article, amount=2)
    flush_hits()
    record_hit(article)
    return article


def lose_the_batch(redis, article):
    """Before it is applied, Redis loses its memory, and a page loads the total."""
    apply = flushing.apply

    def lose_then_apply(batch):
        redis.flushall()
        assert get_hits(article) == 2
        return apply(batch)

    return mock.patch.object(flushing, "apply", lose_then_apply)


def test_the_flush_drops_them(redis, article):
    with lose_the_batch(redis, article):
        flush_hits()

    assert get_hits(article) == 3
    assert ledger.read_unsettled() == []


def test_the_next_flush_does_if_redis_does_not_answer(redis, article):
    away = mock.patch.object(RedisBuffer, "discard_totals", side_effect=BufferUnavailable("away"))
    with lose_the_batch(redis, article), away, pytest.raises(ExceptionGroup):
        flush_hits()
    assert get_hits(article) == 2

    flush_hits()
    assert get_hits(article) == 3
    assert ledger.read_unsettled() == []


@pytest.mark.parametrize("method", ["settle", "discard_totals"])
def test_the_next_flush_does_if_this_one_is_killed(redis, article, method):
    def lose_and_die():
        with lose_the_batch(redis, article), mock.patch.object(RedisBuffer, method, children.die):
            flush_hits()

    assert children.run(lose_and_die) < 0
    assert get_hits(article) == 2

    flush_hits()
    assert get_hits(article) == 3
    assert ledger.read_unsettled() == []


def test_a_later_batch_does_not_hide_a_lost_one(redis, article):
    def evict_then_apply(batch):
        redis.delete(*redis.keys("*:batch"), *redis.keys("*:total:*"))
        assert get_hits(article) == 2
        return apply(batch)

    def lose_and_die():
        with (
            mock.patch.object(flushing, "apply", evict_then_apply),
            mock.patch.object(RedisBuffer, "settle", children.die),
        ):
            flush_hits()

    apply = flushing.apply
    assert children.run(lose_and_die) < 0
    assert get_hits(article) == 2
    record_hit(article)

    flush_hits()
    assert LastBatch.objects.count() == 1
    assert get_hits(article) == 4
    assert ledger.read_unsettled() == []


def test_a_batch_that_redis_still_has_is_settled(redis, article):
    def apply_and_die():
        with mock.patch.object(RedisBuffer, "settle", children.die):
            flush_hits()

    assert children.run(apply_and_die) < 0
    (batch,) = ledger.read_unsettled()
    with mock.patch.object(RedisBuffer, "discard_all_totals", side_effect=AssertionError):
        flush_hits()

    assert ledger.read_unsettled() == []
    assert LastBatch.objects.get().settled == batch.number
    assert get_hits(article) == 3


def test_other_partitions_keep_their_totals(redis, article):
    others = Article.objects.bulk_create(Article(title=str(n)) for n in range(30))

    def apply_and_die():
        with lose_the_batch(redis, article), mock.patch.object(RedisBuffer, "settle", children.die):
            flush_hits()

    assert children.run(apply_and_die) < 0
    get_hits(others)
    kept = {*redis.scan_iter("*:total:*")}
    flush_hits()

    left = {*redis.scan_iter("*:total:*")}
    assert 0 < len(kept - left) < len(left)
