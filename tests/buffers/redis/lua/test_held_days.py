"""Which hits held_days.lua finds, and the ids that tell whether they are in the tables."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import KEYS

HASHES = (KEYS.pending_models, KEYS.pending_daily, KEYS.batch_models, KEYS.batch_daily)


@pytest.fixture(autouse=True)
def held(redis):
    """Hits of two models, two counters and some days, pending and claimed."""
    pending = {"5:views:2026-01-01": 3, "5:views:2026-01-03": 9, "6:views:2026-01-01": 70}
    redis.hset(KEYS.pending_models, mapping={**pending, "5:likes:2026-01-02": 11, "since": 1})
    redis.hset(
        KEYS.pending_daily,
        mapping={"5:views:2026-01-01:a": 1, "5:views:2026-01-01:b:c": 2, "5:views:2026-01-03:a": 9},
    )
    redis.hset(KEYS.batch_models, mapping={"5:views:2026-01-02": -30, "claimed_at": 2})
    redis.hset(KEYS.batch_daily, mapping={"5:views:2026-01-02:a": -30})


@pytest.fixture
def read(call):
    def run(*args):
        reply = call("held_days", (KEYS.batch_id, KEYS.sequence, KEYS.runs, *HASHES), *args)
        return reply[:3], *(dict(zip(f[::2], f[1::2], strict=True)) for f in reply[3:])

    return run


RANGE = ("views", "2026-01-01", "2026-01-02")


@pytest.mark.parametrize(
    ("wanted", "pending", "batch"),
    [
        (("5",), {b"2026-01-01": b"3"}, {b"2026-01-02": b"-30"}),
        (("6",), {b"2026-01-01": b"70"}, {}),
        (("5", "a"), {b"2026-01-01": b"1"}, {b"2026-01-02": b"-30"}),
        (("5", "b:c", "d"), {b"2026-01-01": b"2"}, {b"2026-01-02": b"0"}),
        (("5", "a", "b:c"), {b"2026-01-01": b"3"}, {b"2026-01-02": b"-30"}),
        (("7",), {}, {}),
    ],
)
def test_hits(read, wanted, pending, batch):
    assert read(*RANGE, *wanted) == ([None, None, None], pending, batch)


def test_hits_of_all_models(call, redis):
    redis.hdel(KEYS.pending_models, "5:views:2026-01-01")
    keys = (KEYS.batch_id, KEYS.sequence, KEYS.runs, *HASHES)

    *_, pending, _ = call("held_days", keys, "views", "2026-01-01", "2026-01-09", "")
    assert sorted(pending) == sorted([b"2026-01-01", b"70", b"2026-01-03", b"9"])


def test_counters_are_apart(read):
    assert read("likes", *RANGE[1:], "5")[1:] == ({b"2026-01-02": b"11"}, {})


def test_ids(read, redis):
    redis.mset({KEYS.batch_id: "g:6", KEYS.sequence: "g:6", KEYS.runs: "one two"})

    assert read(*RANGE, "7") == ([b"g:6", b"g:6", b"one two"], {}, {})


@pytest.mark.parametrize("name", ["batch_id", "sequence", "runs"])
def test_key_of_another_type_is_none(read, redis, name):
    redis.rpush(getattr(KEYS, name), "somebody else's")

    assert read(*RANGE, "7") == ([None, None, None], {}, {})


@pytest.mark.parametrize(
    ("name", "pending", "batch"),
    [
        (KEYS.pending_models, {}, {b"2026-01-02": b"-30"}),
        (KEYS.pending_daily, {b"2026-01-01": b"0", b"2026-01-02": b"0"}, {b"2026-01-02": b"-30"}),
        (KEYS.batch_models, {b"2026-01-01": b"1", b"2026-01-02": b"0"}, {}),
        (KEYS.batch_daily, {b"2026-01-01": b"1", b"2026-01-02": b"0"}, {b"2026-01-02": b"0"}),
    ],
)
def test_what_is_not_ours_adds_nothing(read, redis, name, pending, batch):
    redis.hset(KEYS.pending_models, mapping={"5:views:2026-01-02": "many", "5:views:soon": 1})
    redis.delete(name)
    redis.rpush(name, "somebody else's")

    assert read(*RANGE, "5", "a")[1:] == (pending, batch)


def test_malformed_hits_of_a_model_add_nothing(read, redis):
    redis.hset(KEYS.pending_models, "5:views:2026-01-02", "many")

    assert read(*RANGE, "5")[1] == {b"2026-01-01": b"3", b"2026-01-02": b"0"}
