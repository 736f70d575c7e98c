"""What record.lua does with the visitors of hits."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.record_call import VISITORS_SECONDS
from django_hitcount.counters.hits import VisitorHashes
from django_hitcount.exceptions import BufferUnavailable
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    ANN,
    BOB,
    COUNTS,
    GENERATION,
    KEYS,
    MODEL_TODAY,
    REPEAT,
    TODAY,
    VISITORS,
    VISITORS_FIELD,
    A,
    fields_of,
)

MERGED = KEYS.merged_sketches(TODAY)
M_TODAY = f"m:{MODEL_TODAY}"


@pytest.mark.parametrize("repeat", [60, "daily"])
def test_visitor_counts_once(redis, record, rule, repeat):
    rule(repeat)
    redis.set(KEYS.total(A), 10)

    assert [record(n, visitor=ANN) for n in (1, 2)] == [
        [0, [11], [COUNTS], None],
        [0, [b"11"], [REPEAT], None],
    ]
    assert record(3, visitor=BOB) == [0, [12], [COUNTS], None]
    assert fields_of(redis, "pending") == {
        A_TODAY: b"2",
        M_TODAY: b"2",
        "r:2026-01-01:views:repeat": b"1",
    }


def test_interval_ends_by_the_clock_of_redis(redis, record, rule):
    rule(60)
    record(1, visitor=ANN)

    assert 59_000 < redis.pttl(KEYS.repeat(ANN.recent[0])) <= 66_000


def test_visitor_is_known_by_the_key_of_before(redis, record, rule):
    rule(60)
    record(1, visitor=ANN)
    redis.set(KEYS.total(A), 1)

    tomorrow = VisitorHashes("k2", b"n" * 16, (b"n" * 16, ANN.of_day))
    assert record(2, visitor=tomorrow) == [0, [b"1"], [REPEAT], None]
    assert not redis.exists(KEYS.repeat(b"n" * 16))


def test_filter_and_sketch_end_with_their_day(redis, record, rule):
    rule("daily", visitors=True)
    record(1, visitor=ANN)

    names = [KEYS.seen(TODAY, "k1"), KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a")]
    assert all(0 < redis.ttl(name) <= VISITORS_SECONDS + 600 for name in names)


@pytest.mark.parametrize("has_total", [True, False])
def test_visitors_are_sketched_though_they_do_not_count(redis, record, rule, has_total):
    rule("daily", visitors=True)
    if has_total:
        redis.set(KEYS.total(A), 1, ex=60)
    for n, visitor in enumerate([ANN, BOB, ANN], start=1):
        record(n, visitor=visitor)

    assert redis.pfcount(KEYS.sketch(VISITORS)) == 2
    assert redis.smembers(KEYS.sketches_of(5, "a")) == {KEYS.sketch(VISITORS).encode()}


def test_sketch_that_was_lost_begins_again(redis, record, rule):
    rule("daily", visitors=True)
    redis.set(KEYS.total(A), 1, ex=60)
    record(1, visitor=ANN)
    redis.delete(KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a"))
    record(2, visitor=BOB)

    assert redis.smembers(KEYS.sketches_of(5, "a")) == {KEYS.sketch(VISITORS).encode()}


@pytest.mark.parametrize(("before", "noted"), [(None, b"1"), (0, b"0"), (1, b"1")])
def test_changed_sketches_are_noted_and_begun_ones_as_such(redis, record, rule, before, noted):
    rule(visitors=True)
    if before is not None:
        redis.pfadd(KEYS.sketch(VISITORS), "somebody")
        redis.expire(KEYS.sketch(VISITORS), 60)
        redis.sadd(MERGED, VISITORS)
        redis.hset(KEYS.pending, VISITORS_FIELD, before)
    record(1, visitor=ANN)

    assert redis.hget(KEYS.pending, VISITORS_FIELD) == noted


def test_sketch_of_an_earlier_run_is_noted_as_begun(redis, record, rule):
    """It may be older than what the table has."""
    rule(visitors=True)
    redis.pfadd(KEYS.sketch(VISITORS), "somebody")
    redis.expire(KEYS.sketch(VISITORS), 60)
    record(1, visitor=ANN)

    assert redis.hget(KEYS.pending, VISITORS_FIELD) == b"1"
    assert redis.smembers(MERGED) == {VISITORS.encode()}
    assert 0 < redis.ttl(MERGED) <= VISITORS_SECONDS + 600


def test_sketch_that_does_not_change_is_not_noted(redis, record, rule):
    rule(visitors=True)
    redis.pfadd(KEYS.sketch(VISITORS), ANN.of_day)
    record(1, visitor=ANN)

    assert not redis.hexists(KEYS.pending, VISITORS_FIELD)


@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_foreign_values_do_not_keep_a_visitor_from_counting(redis, record, rule, repeat):
    rule(repeat, visitors=True)
    strangers = [KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a"), KEYS.seen(TODAY, "k1")]
    for key in [MERGED, *strangers]:
        redis.lpush(key, "somebody else's")
    record(1, visitor=ANN)
    record(2, refusal="bot")

    assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
    assert fields_of(redis, "pending") == {
        A_TODAY: b"1",
        M_TODAY: b"1",
        VISITORS_FIELD: b"1",
        "r:2026-01-01:views:bot": b"1",
    }


@pytest.mark.parametrize("name", ["pending", "sequence"])
@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_nothing_is_kept_of_the_visitor_of_a_hit_that_is_rejected(
    redis, record, rule, name, repeat
):
    rule(repeat, visitors=True)
    redis.lpush(getattr(KEYS, name), "somebody else's")
    with pytest.raises(BufferUnavailable, match="WRONGTYPE"):
        record(1, visitor=ANN)

    assert redis.keys() == [getattr(KEYS, name).encode()]


@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_amount_of_zero_records_the_visitor_only(redis, record, rule, repeat):
    """The batch has a name all the same: a flush must write the sketch."""
    rule(repeat, visitors=True)
    for n in (1, 2):
        record(n, 0, visitor=VisitorHashes("k1", ANN.of_day))

    assert redis.hgetall(KEYS.pending) == {
        VISITORS_FIELD.encode(): b"1",
        b"id": f"{GENERATION}:1".encode(),
    }
    assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
    assert record(3, visitor=ANN)[2] == [REPEAT if repeat == "daily" else COUNTS]
