"""What complete_totals.lua adds to what the tables say."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import A_TODAY, B_TODAY, KEYS, MODEL_TODAY, A, B, batch

YESTERDAY = "5:views:2025-12-31"
A_YESTERDAY = f"d:{YESTERDAY}:a"
A_AT = ("5:views", "a")
B_AT = ("5:views", "b")


class TestComplete:
    TOTALS = (KEYS.total(A), KEYS.total(B))
    HASHES = (KEYS.pending, KEYS.batch)

    @pytest.fixture(autouse=True)
    def held(self, redis):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending, mapping=batch(8, days=MODEL_TODAY, **{A_TODAY: 2}))
        hits = {A_TODAY: 20, A_YESTERDAY: 10, B_TODAY: 40}
        redis.hset(KEYS.batch, mapping=batch(7, days=f"{YESTERDAY} {MODEL_TODAY}", **hits))

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
        of = (*A_AT, 100, *B_AT, 200)

        assert call("complete_totals", keys, epoch, len(hashes), ttl, *of) == totals
        kept = [redis.get(KEYS.total(field)) for field in (A, B)]
        assert kept == (totals if ttl and totals else [None, None])

    @pytest.fixture
    def complete(self, call):
        """Complete the totals of two counters, from their sums in the tables."""
        keys = (KEYS.epoch, *self.HASHES, *self.TOTALS)

        def run(epoch, of_a, of_b, first=A_AT, second=B_AT):
            return call("complete_totals", keys, epoch, 2, 60, *first, of_a, *second, of_b)

        return run

    def test_total_that_came_meanwhile_stays(self, redis, complete):
        redis.set(KEYS.total(A), 7)

        assert complete(5, 100, 200) == [b"7", b"240"]

    def test_partition_that_was_never_claimed(self, redis, complete):
        redis.delete(KEYS.epoch)

        assert complete(0, 1, 0) == [b"33", b"40"]

    def test_totals_of_many_digits_stay_whole(self, redis, complete):
        redis.delete(KEYS.batch)

        assert complete(5, 2**52, 0)[0] == str(2**52 + 2).encode()

    def test_counters_models_and_objects_are_apart(self, redis, complete):
        """The beginning of one may be that of another."""
        others = {"d:5:views2:2026-01-01:a": 3, "d:55:views:2026-01-01:a": 4}
        redis.hset(KEYS.pending, mapping={**others, f"{A_TODAY}:b": 5, f"{A_TODAY}a": 6})
        days = f"{MODEL_TODAY} 5:views2:2026-01-01 55:views:2026-01-01"
        redis.hset(KEYS.pending, "days", days)
        redis.delete(KEYS.batch)

        assert complete(5, 0, 0) == [b"2", b"0"]
        redis.delete(*self.TOTALS)
        found = complete(5, 0, 0, ("5:views2", "a"), ("55:views", "a"))
        assert found == [b"3", b"4"]
        redis.delete(*self.TOTALS)
        found = complete(5, 0, 0, ("5:views", "a:b"), ("5:views", "aa"))
        assert found == [b"5", b"6"]

    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_what_is_not_ours_adds_nothing(self, redis, complete, put):
        redis.delete(KEYS.batch)
        getattr(redis, put)(KEYS.batch, "rubbish")
        getattr(redis, put)(KEYS.total(A), "rubbish")
        redis.hset(KEYS.pending, B_TODAY, "rubbish")

        assert complete(5, 100, 200) == [b"102", b"200"]
        assert redis.get(KEYS.total(A)) == b"102"

    def test_foreign_days_add_nothing(self, redis, complete):
        redis.hset(KEYS.pending, "days", f"rubbish {MODEL_TODAY} : 5:views")
        redis.hset(KEYS.batch, "days", "")

        assert complete(5, 100, 200) == [b"102", b"200"]

    def test_epoch_of_another_type_is_that_of_a_new_partition(self, redis, complete):
        redis.delete(KEYS.epoch)
        redis.rpush(KEYS.epoch, "rubbish")

        assert complete(0, 100, 200) == [b"132", b"240"]
