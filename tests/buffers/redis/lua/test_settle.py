"""What settle.lua drops and what it keeps."""

from __future__ import annotations

import pytest

from django_hitcount.exceptions import BufferUnavailable
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    GENERATION,
    KEYS,
    VISITORS_FIELD,
    batch,
    content,
)

NAME = f"{GENERATION}:7"
HITS = (A_TODAY, "m:5:views:2026-01-01", "r:2026-01-01:views:bot", VISITORS_FIELD)


class TestSettle:
    KEYS = (KEYS.batch, KEYS.epoch, KEYS.malformed)

    @pytest.fixture(autouse=True)
    def held(self, redis):
        malformed = {"bad": "x", "d:worse": "y", "r:odd": "z", "v:odder": "1"}
        redis.hset(KEYS.batch, mapping=batch(7, *HITS, **malformed))
        redis.set(KEYS.epoch, 5)

    def test_batch_is_dropped(self, redis, call):
        assert call("settle", self.KEYS, NAME) == 1
        assert content(redis) == {}

    def test_next_batch_is_left(self, redis, call):
        redis.hset(KEYS.pending, mapping=batch(8, A_TODAY))
        call("settle", self.KEYS, NAME)

        assert content(redis).keys() == {"pending"}

    @pytest.mark.parametrize("other", [f"{GENERATION}:6", f"{GENERATION}:8", "another:7", ""])
    def test_other_batches_are_left(self, redis, call, other):
        before = content(redis)

        assert call("settle", self.KEYS, other, "bad") == 0
        assert content(redis) == before

    @pytest.mark.parametrize("name", [None, "rubbish"])
    def test_hash_without_a_name_of_ours_is_left(self, redis, call, name):
        redis.hdel(KEYS.batch, "id")
        if name:
            redis.hset(KEYS.batch, "id", name)
        before = content(redis)

        assert call("settle", self.KEYS, name or "") == 0
        assert content(redis) == before

    def test_second_time_is_harmless(self, redis, call):
        call("settle", self.KEYS, NAME)

        assert call("settle", self.KEYS, NAME, "bad") == 0
        assert content(redis) == {}

    def test_malformed_fields_are_kept(self, redis, call):
        assert call("settle", self.KEYS, NAME, "bad", "d:worse", "gone", "r:odd", "v:odder") == 1
        assert content(redis)["malformed"] == {
            b"bad#0": b"x",
            b"d:worse#1": b"y",
            b"r:odd#2": b"z",
            b"v:odder#3": b"1",
        }

    def test_epoch_of_another_type_is_not_in_the_way(self, redis, call):
        redis.delete(KEYS.epoch)
        redis.rpush(KEYS.epoch, "somebody else's")

        assert call("settle", self.KEYS, NAME, "bad") == 1
        assert redis.hgetall(KEYS.malformed) == {b"bad#0": b"x"}
        assert not redis.exists(KEYS.epoch)

    def test_key_of_another_type_in_place_of_malformed_fields_rejects_it(self, redis, call):
        """Before anything is dropped. The next claim moves it away, and gives the batch again."""
        redis.rpush(KEYS.malformed, "somebody else's")
        held = redis.hgetall(KEYS.batch)

        with pytest.raises(BufferUnavailable, match="WRONGTYPE"):
            call("settle", self.KEYS, NAME, "bad")
        assert redis.hgetall(KEYS.batch) == held
        assert redis.get(KEYS.epoch) == b"5"
