"""Truth tables of the Lua scripts, each called by itself."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.exchange import Call, Exchange
from django_hitcount.buffers.keys import PartitionKeys

KEYS = PartitionKeys(3)
A, B = "5:views:a", "5:views:b"
A_TODAY = "5:views:2026-01-01:a"


@pytest.fixture
def call(redis):
    exchange = Exchange("hitcount", timeout_seconds=1)

    def run(name, keys, *args):
        (reply,) = exchange.run_all([Call(name, keys, args)])
        return reply

    return run


def content(redis):
    """All of the partition, the prefix left out."""
    found = {}
    for key in redis.keys("*"):
        name = key.decode().removeprefix("hitcount:{3}:")
        is_hash = redis.type(key) == b"hash"
        found[name] = redis.hgetall(key) if is_hash else redis.get(key)
    return found


class TestRecord:
    KEYS = (
        KEYS.pending,
        KEYS.pending_daily,
        KEYS.malformed,
        KEYS.epoch,
        KEYS.batch_id,
        "hitcount:{3}:recorder:r",
        KEYS.total(A),
    )

    def record(self, call, sequence, amount=1, threshold=0):
        return call("record", self.KEYS, sequence, 60, threshold, A, A_TODAY, amount)

    def test_without_a_total(self, redis, call):
        assert self.record(call, 1, 4) == [0, None, None, None]
        assert content(redis) == {
            "pending": {A.encode(): b"4"},
            "pending_daily": {A_TODAY.encode(): b"4"},
            "recorder:r": b"1",
        }

    def test_with_a_total(self, redis, call):
        redis.set(KEYS.total(A), 10)

        assert self.record(call, 1, 4) == [0, 14]
        assert redis.get(KEYS.total(A)) == b"14"

    def test_while_a_batch_is_set_aside(self, redis, call):
        redis.mset({KEYS.epoch: 7, KEYS.batch_id: "id"})

        assert self.record(call, 1) == [0, None, b"7", b"id"]

    @pytest.mark.parametrize(
        ("sequences", "hits"),
        [([1, 2, 3], 3), ([1, 1], 1), ([2, 1], 1), ([5, 5, 6, 5], 2)],
    )
    def test_a_number_runs_once_and_none_after_a_greater_one(self, redis, call, sequences, hits):
        redis.set(KEYS.total(A), 0)
        for sequence in sequences:
            total = self.record(call, sequence)[-1]

        assert redis.hget(KEYS.pending, A) == str(hits).encode()
        assert redis.hget(KEYS.pending_daily, A_TODAY) == str(hits).encode()
        assert int(total) == hits

    @pytest.mark.parametrize("name", ["pending", "pending_daily", f"total:{A}"])
    def test_key_of_another_type_is_not_in_the_way(self, redis, call, name):
        redis.rpush(f"hitcount:{{3}}:{name}", "somebody else's")

        assert self.record(call, 1, 4)[0] == 0
        assert redis.hget(KEYS.pending, A) == redis.hget(KEYS.pending_daily, A_TODAY) == b"4"

    def test_recorder_is_forgotten_in_time(self, redis, call):
        self.record(call, 1)

        assert 0 < redis.ttl("hitcount:{3}:recorder:r") <= 60

    @pytest.mark.parametrize(
        ("held", "threshold", "crossed"),
        [(0, 0, 0), (0, 1, 0), (1, 1, 1), (2, 1, 0), (4, 5, 0), (5, 5, 1)],
    )
    def test_threshold_is_crossed_once(self, redis, call, held, threshold, crossed):
        for n in range(held):
            redis.hset(KEYS.pending, f"5:views:{n}", 1)

        assert self.record(call, 1, threshold=threshold)[0] == crossed
        assert self.record(call, 2, threshold=threshold)[0] == 0


class TestClaim:
    KEYS = (
        KEYS.pending,
        KEYS.pending_daily,
        KEYS.batch,
        KEYS.batch_daily,
        KEYS.batch_id,
        KEYS.epoch,
    )

    def test_nothing_pending(self, redis, call):
        assert call("claim", self.KEYS, "new") is None
        assert content(redis) == {}

    def test_pending_becomes_the_batch(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        redis.hset(KEYS.pending_daily, A_TODAY, 1)

        assert call("claim", self.KEYS, "new") == b"new"
        assert content(redis) == {
            "batch": {A.encode(): b"1"},
            "batch_daily": {A_TODAY.encode(): b"1"},
            "batch_id": b"new",
            "epoch": b"1",
        }

    def test_batch_that_is_set_aside_comes_back(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        call("claim", self.KEYS, "old")
        redis.hset(KEYS.pending, A, 2)

        assert call("claim", self.KEYS, "new") == b"old"
        assert content(redis) == {
            "batch": {A.encode(): b"1"},
            "pending": {A.encode(): b"2"},
            "batch_id": b"old",
            "epoch": b"1",
        }


class TestSettle:
    KEYS = (KEYS.batch, KEYS.batch_daily, KEYS.batch_id, KEYS.epoch, KEYS.malformed)

    @pytest.fixture(autouse=True)
    def batch(self, redis):
        redis.hset(KEYS.batch, mapping={A: 1, "bad": "x"})
        redis.hset(KEYS.batch_daily, mapping={A_TODAY: 1, "worse": "y"})
        redis.mset({KEYS.batch_id: "id", KEYS.epoch: 5})

    def test_batch_is_dropped(self, redis, call):
        assert call("settle", self.KEYS, "id") == 1
        assert content(redis) == {"epoch": b"6"}

    @pytest.mark.parametrize("other", ["older", ""])
    def test_other_batches_are_left(self, redis, call, other):
        before = content(redis)

        assert call("settle", self.KEYS, other) == 0
        assert content(redis) == before

    def test_second_time_is_harmless(self, redis, call):
        call("settle", self.KEYS, "id")

        assert call("settle", self.KEYS, "id") == 0
        assert content(redis) == {"epoch": b"6"}

    def test_malformed_fields_are_kept(self, redis, call):
        assert call("settle", self.KEYS, "id", "bad", "worse", "gone") == 1
        assert content(redis)["malformed"] == {b"bad#0": b"x", b"worse#1": b"y"}


class TestComplete:
    KEYS = (KEYS.epoch, KEYS.pending, KEYS.batch, KEYS.total(A), KEYS.total(B))

    @pytest.fixture(autouse=True)
    def held(self, redis):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending, A, 2)
        redis.hset(KEYS.batch, mapping={A: 30, B: 40})

    @pytest.mark.parametrize(
        ("epoch", "applied", "totals"),
        [
            (5, 0, [b"132", b"240"]),
            (5, 1, [b"102", b"200"]),
            (4, 0, None),
            (6, 1, None),
        ],
    )
    @pytest.mark.parametrize("ttl", [0, 60])
    def test_totals(self, redis, call, epoch, applied, totals, ttl):
        assert call("complete", self.KEYS, epoch, applied, ttl, A, 100, B, 200) == totals
        kept = [redis.get(KEYS.total(field)) for field in (A, B)]
        assert kept == (totals if ttl and totals else [None, None])

    def test_total_that_came_meanwhile_stays(self, redis, call):
        redis.set(KEYS.total(A), 7)

        assert call("complete", self.KEYS, 5, 0, 60, A, 100, B, 200) == [b"7", b"240"]

    def test_partition_that_was_never_claimed(self, redis, call):
        redis.delete(KEYS.epoch)

        assert call("complete", self.KEYS, 0, 0, 60, A, 1, B, 0) == [b"33", b"40"]

    def test_totals_of_many_digits_stay_whole(self, redis, call):
        assert call("complete", self.KEYS, 5, 1, 60, A, 2**52, B, 0)[0] == str(2**52 + 2).encode()


class TestCompleteDays:
    KEYS = (KEYS.epoch, KEYS.pending_daily, KEYS.batch_daily)

    @pytest.mark.parametrize(
        ("epoch", "applied", "hits"), [(5, 0, b"33"), (5, 1, b"3"), (4, 0, None)]
    )
    def test_hits(self, redis, call, epoch, applied, hits):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending_daily, mapping={"d1": 1, "d2": 2, "d3": 4})
        redis.hset(KEYS.batch_daily, mapping={"d1": 10, "d2": 20, "d4": 40})

        assert call("complete_days", self.KEYS, epoch, applied, "d1", "d2", "d9") == hits


class TestForget:
    KEYS = (
        KEYS.pending,
        KEYS.pending_daily,
        KEYS.batch,
        KEYS.batch_daily,
        KEYS.epoch,
        KEYS.batch_id,
        KEYS.total(A),
    )

    @pytest.fixture(autouse=True)
    def held(self, redis):
        for name in (KEYS.pending, KEYS.batch):
            redis.hset(name, mapping={A: 1, B: 1, "5:downloads:a": 1, "55:views:a": 1, "?": 1})
        for name in (KEYS.pending_daily, KEYS.batch_daily):
            redis.hset(name, mapping={A_TODAY: 1, "5:views:2026-01-01:x:a": 1})
        redis.mset({KEYS.total(A): 9, KEYS.epoch: 1, KEYS.batch_id: "id"})

    def test_object_is_dropped_everywhere(self, redis, call):
        assert call("forget", self.KEYS, "5:a") == b"id"
        left = {B.encode(): b"1", b"55:views:a": b"1", b"?": b"1"}
        daily = {b"5:views:2026-01-01:x:a": b"1"}
        assert content(redis) == {
            "pending": left,
            "batch": left,
            "pending_daily": daily,
            "batch_daily": daily,
            "epoch": b"2",
            "batch_id": b"id",
        }

    def test_totals_alone(self, redis, call):
        before = content(redis)
        call("forget", self.KEYS)

        del before["total:" + A]
        assert content(redis) == {**before, "epoch": b"2"}
