"""What record.lua does with the addresses of visitors."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.record_call import VISITORS_SECONDS
from django_hitcount.counters.hits import VisitorHashes
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    ADDRESS_LIMIT,
    AT_HOME,
    COUNTS,
    HOME,
    KEYS,
    REPEAT,
    TODAY,
    VISITORS,
    A,
)


def visitor_at_home(number):
    own = bytes([number]) * 16
    return VisitorHashes("k1", own, (own,), HOME)


@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_address_counts_up_to_its_limit(redis, record, rule, repeat):
    rule(repeat, per_address=2)
    redis.set(KEYS.total(A), 10)
    found = [record(n, visitor=visitor_at_home(n)) for n in (1, 2, 3)]

    assert found == [
        [0, [11], [COUNTS], None],
        [0, [12], [COUNTS], None],
        [0, [b"12"], [ADDRESS_LIMIT], None],
    ]
    assert redis.hget(KEYS.pending, "r:2026-01-01:views:address_limit") == b"1"
    assert redis.hgetall(AT_HOME) == {b"h" * 8: b"2"}


@pytest.mark.parametrize("value", [None, "x", str(2**63 - 1), "-5"])
def test_foreign_values_do_not_keep_an_address_from_counting(redis, record, rule, value):
    rule("daily", per_address=2)
    if value is None:
        redis.lpush(AT_HOME, "somebody else's")
    else:
        redis.hset(AT_HOME, b"h" * 8, value)
    found = [record(n, visitor=visitor_at_home(n))[2] for n in (1, 2)]

    counted = 0 if value == str(2**63 - 1) else 2
    assert [verdicts == [COUNTS] for verdicts in found] == [n < counted for n in range(2)]
    assert redis.hget(KEYS.pending, A_TODAY) == (str(counted).encode() if counted else None)


def test_repeat_uses_nothing_of_the_limit_up(redis, record, rule):
    rule("daily", per_address=2)
    found = [record(n, visitor=visitor_at_home(1))[2] for n in (1, 2, 3)]

    assert found == [[COUNTS], [REPEAT], [REPEAT]]
    assert redis.hgetall(AT_HOME) == {b"h" * 8: b"1"}


@pytest.mark.parametrize("repeat", [60, "daily", "always"])
def test_number_that_has_run_uses_nothing_of_the_limit_up(redis, record, rule, repeat):
    rule(repeat, per_address=2)
    found = [record(n, visitor=visitor_at_home(n))[2] for n in (1, 1, 1, 2, 2, 3)]

    assert found == [*[[COUNTS]] * 5, [ADDRESS_LIMIT]]


def test_nothing_is_kept_of_visitors_beyond_the_limit(redis, record, rule):
    rule("daily", visitors=True, per_address=1)
    record(1, visitor=visitor_at_home(1))
    before = redis.dump(KEYS.seen(TODAY, "k1")), redis.dump(KEYS.sketch(VISITORS))
    assert record(2, visitor=visitor_at_home(2))[2] == [ADDRESS_LIMIT]

    assert (redis.dump(KEYS.seen(TODAY, "k1")), redis.dump(KEYS.sketch(VISITORS))) == before


def test_hit_without_a_visitor_has_the_limit_of_its_address(redis, record, rule):
    rule("daily", visitors=True, per_address=1)
    nobody = VisitorHashes("k1", None, (), HOME)

    assert [record(n, visitor=nobody)[2] for n in (1, 2)] == [[COUNTS], [ADDRESS_LIMIT]]
    assert not redis.exists(KEYS.seen(TODAY, "k1"), KEYS.sketch(VISITORS))


@pytest.mark.parametrize(("repeat", "least"), [(60, 60), ("daily", VISITORS_SECONDS)])
def test_addresses_end_with_their_interval(redis, record, rule, repeat, least):
    rule(repeat, per_address=5)
    record(1, visitor=visitor_at_home(1))
    redis.pexpire(AT_HOME, 10_000_000_000)
    record(2, visitor=visitor_at_home(2))
    assert redis.ttl(AT_HOME) > VISITORS_SECONDS + 600  # Others do not make it longer.

    redis.delete(AT_HOME)
    record(3, visitor=visitor_at_home(3))
    assert least - 1 < redis.ttl(AT_HOME) <= least + min(least / 10, 600)
