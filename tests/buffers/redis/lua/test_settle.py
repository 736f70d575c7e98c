"""What settle.lua drops and what it keeps."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import A_TODAY, KEYS, VISITORS, A, content


class TestSettle:
    KEYS = (KEYS.batch_id, KEYS.epoch, KEYS.malformed, *KEYS.batches)

    @pytest.fixture(autouse=True)
    def batch(self, redis):
        redis.hset(KEYS.batch, mapping={A: 1, "bad": "x"})
        redis.hset(KEYS.batch_daily, mapping={A_TODAY: 1, "worse": "y"})
        redis.hset(KEYS.batch_refused, mapping={"2026-01-01:views:bot": 1, "odd": "z"})
        redis.hset(KEYS.batch_visitors, mapping={VISITORS: 1, "odder": "1"})
        redis.hset(KEYS.batch_models, mapping={"5:views:2026-01-01": 1, "oddest": "v"})
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
        assert call("settle", self.KEYS, "id", "bad", "worse", "gone", "odd", "odder") == 1
        assert content(redis)["malformed"] == {
            b"bad#0": b"x",
            b"worse#1": b"y",
            b"odd#2": b"z",
            b"odder#3": b"1",
        }
