"""Which hits held_days.lua finds, and the names that tell whether they are in the tables."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import GENERATION, KEYS, batch

HASHES = (KEYS.pending, KEYS.batch)
G6, G7 = (f"{GENERATION}:{n}" for n in (6, 7))


@pytest.fixture(autouse=True)
def held(redis):
    """Hits of two models, two counters and some days, pending and claimed."""
    days = ["5:views:2026-01-01", "5:views:2026-01-03", "6:views:2026-01-01", "5:likes:2026-01-02"]
    of_models = dict(zip((f"m:{day}" for day in days), (3, 9, 70, 11), strict=True))
    of_objects = {
        "d:5:views:2026-01-01:a": 1,
        "d:5:views:2026-01-01:b:c": 2,
        "d:5:views:2026-01-03:a": 9,
    }
    redis.hset(
        KEYS.pending, mapping=batch(7, days=" ".join(days), since=1, **of_models, **of_objects)
    )
    of_batch = {"m:5:views:2026-01-02": -30, "d:5:views:2026-01-02:a": -30}
    redis.hset(KEYS.batch, mapping=batch(6, days="5:views:2026-01-02", claimed_at=2, **of_batch))


@pytest.fixture
def read(call):
    def run(*args):
        reply = call("held_days", (*HASHES, KEYS.runs), *args)
        return reply[:3], *(dict(zip(f[::2], f[1::2], strict=True)) for f in reply[3:])

    return run


RANGE = ("views", "2026-01-01", "2026-01-02")
NAMES = [G6.encode(), G7.encode(), None]


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
    assert read(*RANGE, *wanted) == (NAMES, pending, batch)


def test_hits_of_all_models(call, redis):
    redis.hset(KEYS.pending, "days", "5:views:2026-01-03 6:views:2026-01-01 5:likes:2026-01-02")

    *_, pending, _ = call(
        "held_days", (*HASHES, KEYS.runs), "views", "2026-01-01", "2026-01-09", ""
    )
    assert pending == [b"2026-01-03", b"9", b"2026-01-01", b"70"]


def test_counters_are_apart(read):
    assert read("likes", *RANGE[1:], "5")[1:] == ({b"2026-01-02": b"11"}, {})


@pytest.mark.parametrize(
    ("in_batch", "in_pending"), [(G6, G7), (G6, None), (None, G7), ("rubbish", "x:007")]
)
def test_names(read, redis, in_batch, in_pending):
    redis.delete(*HASHES)
    for key, name in ((KEYS.batch, in_batch), (KEYS.pending, in_pending)):
        if name:
            redis.hset(key, "id", name)
    redis.set(KEYS.runs, "one two")
    known = [name.encode() if name in (G6, G7) else None for name in (in_batch, in_pending)]

    assert read(*RANGE, "7") == ([*known, b"one two"], {}, {})


@pytest.mark.parametrize("name", ["batch", "pending", "runs"])
def test_key_of_another_type_is_none(read, redis, name):
    redis.delete(*HASHES)
    redis.rpush(getattr(KEYS, name), "somebody else's")

    assert read(*RANGE, "5") == ([None, None, None], {}, {})


@pytest.mark.parametrize(
    ("name", "pending", "batch"),
    [
        (KEYS.pending, {}, {b"2026-01-02": b"-30"}),
        (KEYS.batch, {b"2026-01-01": b"1", b"2026-01-02": b"0"}, {}),
    ],
)
def test_what_is_not_ours_adds_nothing(read, redis, name, pending, batch):
    days = redis.hget(KEYS.pending, "days").decode()
    redis.hset(KEYS.pending, "d:5:views:2026-01-02:a", "many")
    redis.hset(KEYS.pending, "days", f"5:views:2026-01-02 5:views:soon {days} rubbish")
    redis.delete(name)
    redis.rpush(name, "somebody else's")

    assert read(*RANGE, "5", "a")[1:] == (pending, batch)


def test_malformed_hits_of_a_model_add_nothing(read, redis):
    redis.hset(KEYS.pending, "m:5:views:2026-01-01", "many")

    assert read(*RANGE, "5")[1] == {b"2026-01-01": b"0"}
