"""What complete_totals.lua adds to what the tables say."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import KEYS, A, B


class TestComplete:
    TOTALS = (KEYS.total(A), KEYS.total(B))
    HASHES = (KEYS.pending, KEYS.batch)

    @pytest.fixture(autouse=True)
    def held(self, redis):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending, A, 2)
        redis.hset(KEYS.batch, mapping={A: 30, B: 40})

    @pytest.mark.parametrize(
        ("epoch", "hashes", "totals"),
        [
            (5, HASHES, [b"132", b"240"]),
            (5, HASHES[:1], [b"102", b"200"]),
            (5, (), [b"100", b"200"]),
            (4, HASHES, None),
            (6, HASHES, None),
        ],
    )
    @pytest.mark.parametrize("ttl", [0, 60])
    def test_totals(self, redis, call, epoch, hashes, totals, ttl):
        keys = (KEYS.epoch, *hashes, *self.TOTALS)

        assert call("complete_totals", keys, epoch, len(hashes), ttl, A, 100, B, 200) == totals
        kept = [redis.get(KEYS.total(field)) for field in (A, B)]
        assert kept == (totals if ttl and totals else [None, None])

    @pytest.fixture
    def complete(self, call):
        keys = (KEYS.epoch, *self.HASHES, *self.TOTALS)
        return lambda epoch, *args: call("complete_totals", keys, epoch, 2, 60, *args)

    def test_total_that_came_meanwhile_stays(self, redis, complete):
        redis.set(KEYS.total(A), 7)

        assert complete(5, A, 100, B, 200) == [b"7", b"240"]

    def test_partition_that_was_never_claimed(self, redis, complete):
        redis.delete(KEYS.epoch)

        assert complete(0, A, 1, B, 0) == [b"33", b"40"]

    def test_totals_of_many_digits_stay_whole(self, redis, complete):
        redis.delete(KEYS.batch)

        assert complete(5, A, 2**52, B, 0)[0] == str(2**52 + 2).encode()

    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_what_is_not_ours_adds_nothing(self, redis, complete, put):
        redis.delete(KEYS.batch)
        getattr(redis, put)(KEYS.batch, "rubbish")
        getattr(redis, put)(KEYS.total(A), "rubbish")
        redis.hset(KEYS.pending, B, "rubbish")

        assert complete(5, A, 100, B, 200) == [b"102", b"200"]
        assert redis.get(KEYS.total(A)) == b"102"

    def test_epoch_of_another_type_is_that_of_a_new_partition(self, redis, complete):
        redis.delete(KEYS.epoch)
        redis.rpush(KEYS.epoch, "rubbish")

        assert complete(0, A, 100, B, 200) == [b"132", b"240"]
