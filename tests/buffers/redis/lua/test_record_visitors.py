"""What record.lua does with the visitors of hits."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.record_call import VISITORS_SECONDS
from django_hitcount.counters.hits import VisitorHashes
from tests.buffers.redis.lua.partition import (
    ANN,
    BOB,
    COUNTS,
    KEYS,
    REPEAT,
    RUN_ID,
    TODAY,
    VISITORS,
    A,
)


@pytest.mark.parametrize("repeat", [60, "daily"])
def test_visitor_counts_once(redis, record, rule, repeat):
    rule(repeat)
    redis.set(KEYS.total(A), 10)

    assert [record(n, visitor=ANN) for n in (1, 2)] == [
        [0, [11], [COUNTS], None],
        [0, [b"11"], [REPEAT], None],
    ]
    assert record(3, visitor=BOB) == [0, [12], [COUNTS], None]
    assert redis.hgetall(KEYS.pending) == {A.encode(): b"2"}
    assert redis.hgetall(KEYS.pending_refused) == {b"2026-01-01:views:repeat": b"1"}


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


def test_visitors_are_sketched_though_they_do_not_count(redis, record, rule):
    rule("daily", visitors=True)
    for n, visitor in enumerate([ANN, BOB, ANN], start=1):
        record(n, visitor=visitor)

    assert redis.pfcount(KEYS.sketch(VISITORS)) == 2
    assert redis.smembers(KEYS.sketches_of(5, "a")) == {KEYS.sketch(VISITORS).encode()}


@pytest.mark.parametrize(
    ("before", "noted"), [({}, b"1"), ({VISITORS: 0}, b"0"), ({VISITORS: 1}, b"1")]
)
def test_changed_sketches_are_noted_and_begun_ones_as_such(redis, record, rule, before, noted):
    rule(visitors=True)
    if before:
        redis.pfadd(KEYS.sketch(VISITORS), "somebody")
        redis.expire(KEYS.sketch(VISITORS), 60)
        redis.sadd(KEYS.merged_sketches, VISITORS)
        redis.hset(KEYS.pending_visitors, mapping=before)
    record(1, visitor=ANN)

    assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): noted}


def test_sketch_of_an_earlier_run_is_noted_as_begun(redis, record, rule):
    """It may be older than what the table has."""
    rule(visitors=True)
    redis.pfadd(KEYS.sketch(VISITORS), "somebody")
    redis.expire(KEYS.sketch(VISITORS), 60)
    record(1, visitor=ANN)

    assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): b"1"}
    assert 0 < redis.ttl(KEYS.merged_sketches) <= VISITORS_SECONDS + 600


def test_sketch_that_does_not_change_is_not_noted(redis, record, rule):
    rule(visitors=True)
    redis.pfadd(KEYS.sketch(VISITORS), ANN.of_day)
    record(1, visitor=ANN)

    assert not redis.exists(KEYS.pending_visitors)


@pytest.mark.parametrize("name", ["pending_refused", "pending_visitors"])
@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_foreign_values_do_not_keep_a_visitor_from_counting(redis, record, rule, name, repeat):
    rule(repeat, visitors=True)
    strangers = [KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a"), KEYS.seen(TODAY, "k1")]
    for key in [f"hitcount:{{3}}:{RUN_ID}:{name}", *strangers]:
        redis.lpush(key, "somebody else's")
    record(1, visitor=ANN)
    record(2, refusal="bot")

    assert redis.hgetall(KEYS.pending) == {A.encode(): b"1"}
    assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
    assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): b"1"}
    assert redis.hgetall(KEYS.pending_refused) == {b"2026-01-01:views:bot": b"1"}


@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_amount_of_zero_records_the_visitor_only(redis, record, rule, repeat):
    rule(repeat, visitors=True)
    for n in (1, 2):
        record(n, 0, visitor=VisitorHashes("k1", ANN.of_day))

    assert not redis.exists(KEYS.pending, KEYS.pending_daily, KEYS.pending_refused)
    assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
    assert record(3, visitor=ANN)[2] == [REPEAT if repeat == "daily" else COUNTS]
