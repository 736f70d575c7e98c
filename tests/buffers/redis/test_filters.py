"""The filters of repeat visitors: what they answer, and what they take."""

from __future__ import annotations

import random

import pytest

from django_hitcount.buffers.redis.server import RedisServer
from tests.buffers.redis.filters import BUCKET_BYTES, MARK_BYTES, bucket_of, length, see_command
from tests.redis_server import replies_to

FILTER = "hitcount:{3}:seen:2026-01-01:k"
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


@pytest.fixture
def see(redis):
    """Call the script once for each list of hashes; returns how many of each were seen before."""
    server = RedisServer("hitcount", timeout_seconds=60)

    def run(*lists, ttl_seconds=60):
        commands = [see_command(FILTER, entries, ttl_seconds=ttl_seconds) for entries in lists]
        return replies_to(server, commands)

    return run


def some_entries(count, seed=1):
    source = random.Random(seed)
    return [source.randbytes(16) for _ in range(count)]


def in_one_bucket(count):
    """Entries that share their bucket in every layer."""
    return [b"\0\0\0\0\0\7" + bytes(7) + (n + 1).to_bytes(3) for n in range(count)]


def fill(redis, layers):
    """Make a filter of full layers, with marks that no entry of these tests has."""
    redis.set(FILTER, b"\xee\xee\xee" * (length(layers) // MARK_BYTES), ex=60)


class TestSee:
    def test_entry_is_new_once(self, see):
        assert see([A], [A], [B], [A, B]) == [0, 1, 0, 2]

    def test_entries_of_one_call(self, see):
        assert see([A, B, A, C, A]) == [2]

    @pytest.mark.parametrize("part", [slice(0, 6), slice(13, 16)])
    def test_bucket_and_mark_of_an_entry_count(self, see, part):
        other = bytearray(A)
        other[part] = B[part]

        assert see([A], [bytes(other)]) == [0, 0]

    def test_no_entries(self, redis, see):
        assert see([]) == [0]
        assert redis.keys() == []

    def test_mark_is_written_into_the_bucket_of_the_entry(self, redis, see):
        entries = some_entries(2)
        see(entries)

        for entry in entries:
            begin = bucket_of(entry, 0)
            assert entry[-MARK_BYTES:] in redis.getrange(FILTER, begin, begin + BUCKET_BYTES - 1)

    def test_bucket_that_is_full_lets_the_filter_grow(self, redis, see):
        lengths = []
        for entry in in_one_bucket(128 * 4 + 1):
            see([entry])
            lengths.append(redis.strlen(FILTER))

        assert [*dict.fromkeys(lengths)] == [length(layers) for layers in range(1, 6)]
        assert [lengths.count(length(layers)) for layers in range(1, 5)] == [128] * 4

    def test_other_buckets_of_earlier_layers_are_still_used(self, redis, see):
        see(in_one_bucket(129))
        see([A])

        begin = bucket_of(A, 0)
        assert redis.getrange(FILTER, begin, begin + 2) == A[-MARK_BYTES:]

    def test_what_was_seen_stays_seen_while_the_filter_grows(self, redis, see):
        entries = [*some_entries(20_000), *in_one_bucket(1000)]
        see(*(entries[n : n + 500] for n in range(0, len(entries), 500)))

        assert redis.strlen(FILTER) >= length(5)
        assert see(entries[:1000], entries[-1000:]) == [1000, 1000]

    def test_memory_is_no_more_than_30_bits_for_an_entry_before_it_grows(self, redis, see):
        """Though a string that grows has a reserve."""
        entries, took, layers = iter(some_entries(30_000)), 0, 1
        for count in range(30_000):
            before = took
            see([next(entries)])
            took = redis.memory_usage(FILTER)
            if redis.strlen(FILTER) > length(layers):
                layers += 1
                assert 8 * before <= 30 * count
        assert layers >= 6

    @pytest.mark.parametrize("layers", range(10))
    def test_layers_lie_where_python_says(self, redis, see, layers):
        fill(redis, layers)

        assert see([A], [A]) == [0, 1]
        assert redis.strlen(FILTER) == length(layers + 1)
        begin = bucket_of(A, layers)
        assert redis.getrange(FILTER, begin, begin + 3) == A[-MARK_BYTES:] + b"\0"
        assert redis.getrange(FILTER, length(layers), -1).count(b"a") == MARK_BYTES

    def test_repeated_entry_writes_nothing(self, redis, see):
        see([A, B])
        before = redis.get(FILTER)
        see([A, B])

        assert redis.get(FILTER) == before

    def test_time_to_live_is_set_once(self, redis, see):
        see([A], ttl_seconds=60)
        assert 50 < redis.ttl(FILTER) <= 60

        redis.expire(FILTER, 30)
        see([B], in_one_bucket(300), ttl_seconds=60)
        assert redis.strlen(FILTER) == length(3)
        assert 20 < redis.ttl(FILTER) <= 30

    def test_lost_time_to_live_comes_back(self, redis, see):
        see([A])
        redis.persist(FILTER)
        see(in_one_bucket(300), ttl_seconds=60)

        assert 50 < redis.ttl(FILTER) <= 60

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda redis: redis.rpush(FILTER, "somebody else's"),
            lambda redis: redis.set(FILTER, "short"),
            lambda redis: redis.set(FILTER, b"\xff" * 5000),
        ],
        ids=["of another type", "too short", "of another making"],
    )
    def test_filter_that_is_none_starts_anew(self, redis, see, spoil):
        spoil(redis)

        assert see([A], [A]) == [0, 1]
        assert redis.strlen(FILTER) == length(1)
        assert redis.ttl(FILTER) > 0

    def test_filter_that_is_lost_starts_anew(self, redis, see):
        see([A, B])
        redis.delete(FILTER)

        assert see([A], [A]) == [0, 1]
        assert redis.ttl(FILTER) > 0

    @pytest.mark.parametrize(
        "entry",
        [bytes(16), b"\xff" * 16, bytes(13) + b"\1\0\0", bytes(15) + b"\1"],
        ids=["zeros", "ones", "mark that ends with zeros", "mark that begins with zeros"],
    )
    def test_odd_marks_take_one_place_each(self, redis, see, entry):
        first = entry[:13] + b"\2\0\0"
        assert see([first], [entry], [entry], [first]) == [0, 0, 1, 1]

        marks = redis.getrange(FILTER, bucket_of(entry, 0), bucket_of(entry, 0) + 8)
        assert marks[:3] == b"\2\0\0"
        assert marks[3:6] == (entry[-3:] if any(entry[-3:]) else b"\0\0\1")
        assert marks[6:] == bytes(3)

    def test_mark_across_two_places_is_none(self, see):
        one, two, across = (bytes(13) + mark for mark in (b"xab", b"cyz", b"abc"))

        assert see([one], [two], [across]) == [0, 0, 0]

    def test_what_no_string_can_hold_counts_as_new(self, redis, see):
        limit = redis.config_get("proto-max-bulk-len")
        redis.config_set("proto-max-bulk-len", "1mb")
        try:
            fill(redis, 8)
            before = redis.get(FILTER)

            assert length(8) < 2**20 < length(9)
            assert see([A], [A]) == [0, 0]
            assert redis.get(FILTER) == before
        finally:
            redis.config_set("proto-max-bulk-len", limit["proto-max-bulk-len"])


class TestJudgement:
    def test_false_repeats_are_fewer_than_1_in_10000(self, see):
        entries = some_entries(100_000)
        false_repeats = sum(see(*(entries[n : n + 1000] for n in range(0, len(entries), 1000))))

        assert 0 < false_repeats <= len(entries) / 10_000

    def test_entry_that_was_seen_is_never_new(self, see):
        """Compared with a plain set; buckets are crowded, so the filter grows often."""
        source = random.Random(2)
        pool = [bytes(6) + bytes(7) + entry[-3:] for entry in some_entries(2000)]
        asked = [source.choice(pool) for _ in range(8000)]
        replies = see(*([entry] for entry in asked))

        seen = set()
        for entry, reply in zip(asked, replies, strict=True):
            assert reply or entry not in seen
            seen.add(entry)
        assert sum(replies) - (len(asked) - len(seen)) <= 0.01 * len(seen)
