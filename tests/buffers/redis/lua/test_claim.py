"""Which batch claim.lua gives to a flusher."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.keys import RunKeys
from tests.buffers.redis.lua.partition import A_TODAY, KEYS, NOW, RUN_ID, A, content


class TestClaim:
    EPOCH = RunKeys(3, "now").epoch
    KEYS = (
        *(KEYS.epoch, KEYS.batch_id, KEYS.sequence, *KEYS.pendings, *KEYS.batches),
        *(KEYS.runs, KEYS.malformed, KEYS.epoch),
    )

    def test_nothing_pending(self, redis, call):
        assert call("claim", self.KEYS, "new", "") == [None, 0, []]
        assert content(redis) == {}

    def test_pending_becomes_the_batch(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        redis.hset(KEYS.pending_daily, A_TODAY, 1)
        redis.set(KEYS.sequence, "g:6")

        assert call("claim", self.KEYS, "new", "") == [b"g:7", 1, []]
        assert content(redis) == {
            "batch": {A.encode(): b"1"},
            "batch_daily": {A_TODAY.encode(): b"1"},
            "batch_models": {b"claimed_at": NOW},
            "batch_id": b"g:7",
            "sequence": b"g:7",
            "epoch": b"1",
        }

    @pytest.mark.parametrize("name", ["", "_daily", "_refused", "_visitors", "_models"])
    def test_any_of_the_hashes_makes_a_batch(self, redis, call, name):
        redis.hset(KEYS.pending + name, "field", 1)

        assert call("claim", self.KEYS, "new", "") == [b"new:1", 1, []]
        assert content(redis)["batch" + name].items() >= {b"field": b"1"}.items()
        assert not redis.exists(KEYS.pending + name)

    def test_moments_move_with_the_hits(self, redis, call):
        redis.hset(KEYS.pending_models, mapping={"5:views:2026-01-01": 1, "since": 1000})
        call("claim", self.KEYS, "new", "")
        redis.hset(KEYS.batch_models, "claimed_at", 2000)
        call("claim", self.KEYS, "new", "")

        assert content(redis)["batch_models"] == {
            b"5:views:2026-01-01": b"1",
            b"since": b"1000",
            b"claimed_at": b"2000",
        }
        assert not redis.exists(KEYS.pending_models)

    def test_batch_that_is_set_aside_comes_back(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        call("claim", self.KEYS, "old", "")
        redis.hset(KEYS.pending, A, 2)

        assert call("claim", self.KEYS, "new", "") == [b"old:1", 0, []]
        assert content(redis) == {
            **dict.fromkeys(("batch_id", "sequence"), b"old:1"),
            "batch": {A.encode(): b"1"},
            "batch_models": {b"claimed_at": NOW},
            "pending": {A.encode(): b"2"},
            "epoch": b"1",
        }

    @pytest.mark.parametrize("batch_id", [None, "rubbish"])
    def test_batch_whose_id_is_lost_is_known_by_the_sequence(self, redis, call, batch_id):
        redis.hset(KEYS.batch, A, 1)
        redis.set(KEYS.sequence, "g:6")
        if batch_id:
            redis.set(KEYS.batch_id, batch_id)

        assert call("claim", self.KEYS, "new", "")[:2] == [b"g:6", 0]

    def test_batch_of_which_nothing_is_left_comes_back(self, redis, call):
        """A flusher may have read it before, and must find it in the ledger."""
        redis.set(KEYS.batch_id, "g:6")

        assert call("claim", self.KEYS, "new", "") == [b"g:6", 0, []]

    @pytest.mark.parametrize("name", ["pending", "pending_visitors", "batch", "batch_refused"])
    def test_key_of_another_type_is_moved_and_reported(self, redis, call, name):
        key = f"hitcount:{{3}}:{RUN_ID}:{name}"
        redis.hset(KEYS.pending_daily, A_TODAY, 1)
        for n in range(2):
            redis.rpush(key, f"somebody else's {n}")
            _, _, moved = call("claim", self.KEYS, "new", "")

            assert moved == [f"{KEYS.malformed}:{key}#{n}".encode()]
            assert redis.lrange(moved[0], 0, -1) == [f"somebody else's {n}".encode()]
        assert redis.hgetall(KEYS.batch_daily) == {A_TODAY.encode(): b"1"}

    @pytest.mark.parametrize(
        "text", ["rubbish", "x:007", "x:" + "9" * 30, "y" * 101 + ":1", b"\xff:1", "a\0b:1", ":1"]
    )
    @pytest.mark.parametrize("name", ["batch_id", "sequence"])
    def test_foreign_name_of_a_batch_is_moved(self, redis, call, name, text):
        """Read and written again, it would be another text."""
        key = f"hitcount:{{3}}:{RUN_ID}:{name}"
        redis.hset(KEYS.pending, A, 1)
        redis.set(key, text)

        place = f"{KEYS.malformed}:{key}#0".encode()
        assert call("claim", self.KEYS, "new", "") == [b"new:1", 1, [place]]
        assert redis.get(KEYS.batch_id) == redis.get(KEYS.sequence) == b"new:1"

    @pytest.mark.parametrize("name", ["epoch", "batch_id", "sequence"])
    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_foreign_values_of_other_keys_do_no_harm(self, redis, call, name, put):
        redis.hset(KEYS.pending, A, 1)
        getattr(redis, put)(f"hitcount:{{3}}:{RUN_ID}:{name}", "rubbish")

        assert call("claim", self.KEYS, "new", "")[:2] == [b"new:1", 1]
        assert redis.get(KEYS.epoch).isdigit()
        assert redis.get(KEYS.batch_id) == redis.get(KEYS.sequence) == b"new:1"

    def test_run_that_is_over_is_claimed_and_retired(self, redis, call):
        keys = (self.EPOCH, *self.KEYS[1:])
        redis.hset(KEYS.pending, A, 1)
        redis.mset({KEYS.sequence: "g:6", KEYS.epoch: 9, KEYS.runs: f"older {RUN_ID} now"})

        assert call("claim", keys, "new", RUN_ID) == [b"g:7", 1, []]
        redis.delete(*KEYS.batches, KEYS.batch_id)
        assert call("claim", keys, "new", RUN_ID) == [None, 0, []]
        assert redis.get(KEYS.runs) == b"older now"
        assert not redis.exists(KEYS.sequence, KEYS.epoch)
        assert redis.get(self.EPOCH) == b"1"
