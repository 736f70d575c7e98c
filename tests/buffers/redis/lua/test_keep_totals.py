"""Which totals keep_totals.lua keeps."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import A_TODAY, KEYS, MODEL_TODAY, A, B, batch

TOTALS = (KEYS.total(A), KEYS.total(B))


@pytest.fixture(autouse=True)
def pending(redis):
    redis.set(KEYS.epoch, 5)
    redis.hset(KEYS.pending, mapping=batch(8, days=MODEL_TODAY, **{A_TODAY: 2}))


@pytest.fixture
def keep(redis, call):
    """Keep the totals of two counters, given without pending hits; returns those in Redis."""

    def run(epoch, of_a, of_b):
        keys, of = [KEYS.epoch, KEYS.pending, *TOTALS], "5:views"
        assert call("keep_totals", keys, epoch, 60, of, ":a", of_a, of, ":b", of_b) is None
        return [redis.get(key) for key in TOTALS]

    return run


def test_hits_that_are_pending_now_are_added(redis, keep):
    assert keep(5, 130, 240) == [b"132", b"240"]
    assert 50 < redis.ttl(KEYS.total(A)) <= 60


def test_nothing_of_another_epoch(keep):
    assert keep(4, 130, 240) == [None, None]


@pytest.mark.parametrize("rubbish", [None, "rubbish"])
def test_nothing_without_an_epoch(redis, keep, rubbish):
    redis.delete(KEYS.epoch)
    if rubbish:
        redis.rpush(KEYS.epoch, rubbish)

    assert keep(5, 130, 240) == keep(0, 130, 240) == keep(1, 130, 240) == [None, None]


def test_total_that_came_meanwhile_stays(redis, keep):
    redis.set(KEYS.total(A), 7)

    assert keep(5, 100, 200) == [b"7", b"200"]


def test_foreign_total_is_replaced(redis, keep):
    redis.rpush(KEYS.total(A), "rubbish")
    redis.set(KEYS.total(B), "rubbish")

    assert keep(5, 100, 200) == [b"102", b"200"]


def test_totals_of_many_digits_stay_whole(keep):
    assert keep(5, 2**52, 0)[0] == str(2**52 + 2).encode()
