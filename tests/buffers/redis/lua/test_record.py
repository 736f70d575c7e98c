"""What record.lua does with hits."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.record_call import build_record_call
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.outages.command_ids import REMEMBERED_SECONDS, CommandId
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    COUNTS,
    GENERATION,
    KEYS,
    MODEL_TODAY,
    NOW,
    RECORDER,
    RUN_ID,
    TODAY,
    A,
    content,
    with_now,
)
from tests.redis_server import replies_to


def test_without_a_total(redis, record):
    assert record(1, 4) == [0, [None], [COUNTS], [None, None, RUN_ID.encode()]]
    assert content(redis) == {
        "pending": {A.encode(): b"4"},
        "pending_daily": {A_TODAY.encode(): b"4"},
        "pending_models": {MODEL_TODAY.encode(): b"4", b"since": NOW},
        f"recorder:{RECORDER.hex}": b"1",
        "sequence": f"{GENERATION}:0".encode(),
        "runs": RUN_ID.encode(),
    }


def test_with_a_total(redis, record):
    redis.set(KEYS.total(A), 10)

    assert record(1, 4) == [0, [14], [COUNTS], None]
    assert redis.get(KEYS.total(A)) == b"14"


@pytest.mark.parametrize("amount", [1, -3])
def test_total_that_is_not_known_does_not_begin_with_the_hit(redis, record, amount):
    assert record(1, amount)[1] == [None]
    assert not redis.exists(KEYS.total(A))


@pytest.mark.parametrize(("before", "amount"), [(0, 1), (0, -3), (4, -4)])
def test_total_keeps_its_ttl(redis, record, before, amount):
    redis.set(KEYS.total(A), before, ex=60)

    assert record(1, amount)[1] == [before + amount]
    assert 50 < redis.ttl(KEYS.total(A)) <= 60


def test_while_a_batch_is_set_aside(redis, record):
    redis.mset({KEYS.epoch: 7, KEYS.batch_id: "id"})

    assert record(1) == [0, [None], [COUNTS], [b"7", b"id", RUN_ID.encode()]]


@pytest.mark.parametrize(
    ("sequences", "hits"),
    [([1, 2, 3], 3), ([1, 1], 1), ([2, 1], 1), ([5, 5, 6, 5], 2)],
)
def test_a_number_runs_once_and_none_after_a_greater_one(redis, record, sequences, hits):
    redis.set(KEYS.total(A), 0, ex=60)
    for sequence in sequences:
        _, (total,), _, _ = record(sequence)

    assert redis.hget(KEYS.pending, A) == str(hits).encode()
    assert redis.hget(KEYS.pending_daily, A_TODAY) == str(hits).encode()
    assert redis.hget(KEYS.pending_models, MODEL_TODAY) == str(hits).encode()
    assert int(total) == hits


@pytest.mark.parametrize("name", ["pending", "pending_daily", "pending_models", f"total:{A}"])
def test_key_of_another_type_is_not_in_the_way(redis, record, name):
    redis.rpush(f"hitcount:{{3}}:{RUN_ID}:{name}", "somebody else's")

    assert record(1, 4)[0] == 0
    assert redis.hget(KEYS.pending, A) == redis.hget(KEYS.pending_daily, A_TODAY) == b"4"
    assert with_now(redis.hgetall(KEYS.pending_models)) == {
        MODEL_TODAY.encode(): b"4",
        b"since": NOW,
    }


def test_recorder_is_forgotten_in_time(redis, record):
    record(1)

    assert 0 < redis.ttl(KEYS.recorder(RECORDER)) <= REMEMBERED_SECONDS


@pytest.mark.parametrize(
    ("held", "threshold", "crossed"),
    [(0, 0, 0), (0, 1, 0), (1, 1, 1), (2, 1, 0), (4, 5, 0), (5, 5, 1)],
)
def test_threshold_is_crossed_once(redis, record, held, threshold, crossed):
    for n in range(held):
        redis.hset(KEYS.pending, f"5:views:{n}", 1)

    assert record(1, threshold=threshold)[0] == crossed
    assert record(2, threshold=threshold)[0] == 0


def test_refused_hit_is_counted_apart(redis, record):
    redis.set(KEYS.total(A), 10)

    assert record(1, refusal="bot") == [0, [b"10"], [COUNTS], None]
    assert record(1, refusal="bot") == [0, [b"10"], [COUNTS], None]
    assert content(redis)["pending_refused"] == {b"2026-01-01:views:bot": b"1"}
    assert not redis.exists(KEYS.pending, KEYS.pending_daily, KEYS.pending_models)


def test_moment_of_the_first_hit_stays(redis, record):
    record(1)
    redis.hset(KEYS.pending_models, "since", 1000)
    record(2, 5)
    record(3, -5)

    assert redis.hgetall(KEYS.pending_models) == {MODEL_TODAY.encode(): b"1", b"since": b"1000"}


def test_hits_of_all_objects_of_a_model_add_up(redis, transport):
    hits = [
        NewHits(CounterKey(5, name, counter), TODAY, amount)
        for name, counter, amount in [("a", "views", 2), ("b:c", "views", 3), ("a", "likes", 4)]
    ]
    replies_to(transport, [build_record_call(KEYS, hits, CommandId(RECORDER, 1), 0)])

    found = redis.hgetall(KEYS.pending_models)
    assert found[MODEL_TODAY.encode()] == b"5"
    assert found[b"5:likes:2026-01-01"] == b"4"
