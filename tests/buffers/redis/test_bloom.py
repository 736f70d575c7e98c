"""The Bloom filters of repeats: their geometry, and the script that uses them."""

from __future__ import annotations

import math
import random
import struct
from itertools import takewhile

import pytest

from django_hitcount.buffers.redis.bloom import Geometry
from django_hitcount.buffers.redis.server import RedisServer
from tests.buffers.redis.filters import HEADER_BITS, bits, capacity, hashes, see_command
from tests.redis_server import replies_to

FILTER = "hitcount:{3}:seen:2026-01-01:k"
DEFAULT = Geometry(rate=0.001)
HALF = (bits(DEFAULT, 1) - HEADER_BITS) // 2 - 1
SMALL = Geometry(rate=0.001, first_capacity=10)
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


@pytest.fixture
def see(redis):
    """Call the script once for each list of hashes; returns how many of each were seen before."""
    server = RedisServer("hitcount", timeout_seconds=60)

    def run(*lists, geometry=SMALL, ttl_seconds=60):
        commands = [
            see_command(FILTER, entries, geometry=geometry, ttl_seconds=ttl_seconds)
            for entries in lists
        ]
        return replies_to(server, commands)

    return run


def some_entries(count):
    source = random.Random(1)
    return [source.randbytes(16) for _ in range(count)]


def fill_with_zeros(redis, layers, geometry):
    """Make a filter of full layers without any hash."""
    header = struct.pack(">I", capacity(geometry, layers)) + geometry.for_script[4:8]
    redis.set(FILTER, header.ljust(math.ceil(bits(geometry, layers) / 8), b"\0"), ex=60)


def bits_set(redis):
    return redis.bitcount(FILTER, HEADER_BITS, -1, "BIT")


class TestGeometry:
    @pytest.mark.parametrize("rate", [0.1, 0.01, 0.001, 1e-6])
    def test_rates_of_all_layers_add_up_to_the_rate(self, rate):
        geometry = Geometry(rate=rate)

        rates = [self.rate_of(geometry, layer) for layer in range(40)]
        assert rate / 2 < sum(rates) <= rate

    @staticmethod
    def rate_of(geometry, layer):
        """The error rate of a full layer, by Bloom 1970."""
        length = bits(geometry, layer + 1) - bits(geometry, layer)
        entries = capacity(geometry, layer + 1) - capacity(geometry, layer)
        number = hashes(geometry, layer)
        return (1 - math.exp(-number * entries / length)) ** number

    def test_no_more_than_24_bits_for_an_entry_in_any_string_of_redis(self):
        fitting = [*takewhile(lambda layers: bits(DEFAULT, layers) <= 2**32, range(1, 40))]

        assert capacity(DEFAULT, fitting[0]) == 1000
        assert capacity(DEFAULT, fitting[-1]) > 100_000_000
        assert max(bits(DEFAULT, layers) / capacity(DEFAULT, layers) for layers in fitting) <= 24

    def test_each_layer_is_twice_as_large_and_a_little_more(self):
        lengths = [bits(DEFAULT, n + 1) - bits(DEFAULT, n) for n in range(10)]

        assert bits(DEFAULT, 0) == HEADER_BITS
        more = {length / 2**n - lengths[0] for n, length in enumerate(lengths)}
        assert more == {n * (lengths[1] / 2 - lengths[0]) for n in range(10)}


class TestSee:
    def test_entry_is_new_once(self, see):
        assert see([A], [A], [B], [A, B]) == [0, 1, 0, 2]

    def test_entries_of_one_call(self, see):
        assert see([A, B, A, C, A]) == [2]

    @pytest.mark.parametrize("part", [slice(0, 6), slice(6, 11), slice(11, 16)])
    def test_all_parts_of_an_entry_count(self, see, part):
        other = bytearray(A)
        other[part] = B[part]

        assert see([A], [bytes(other)]) == [0, 0]

    def test_no_entries(self, redis, see):
        assert see([]) == [0]
        assert redis.keys() == []

    def test_filter_is_as_long_as_its_layers(self, redis, see):
        lengths = set()
        for mark in some_entries(capacity(SMALL, 4) + 1):
            see([mark])
            lengths.add(redis.strlen(FILTER))

        assert lengths == {math.ceil(bits(SMALL, layers) / 8) for layers in range(1, 6)}

    @pytest.mark.parametrize("layers", range(1, 14))
    def test_memory_is_no_more_than_24_bits_for_an_entry(self, redis, see, layers):
        """Though a string that grows has a reserve."""
        fill_with_zeros(redis, layers - 1, DEFAULT)
        see([A], geometry=DEFAULT)

        assert redis.strlen(FILTER) == math.ceil(bits(DEFAULT, layers) / 8)
        assert 8 * redis.memory_usage(FILTER) <= 24 * capacity(DEFAULT, layers)

    def test_what_was_seen_stays_seen_while_the_filter_grows(self, see):
        entries = some_entries(capacity(SMALL, 5))
        see(entries)

        assert see(entries) == [len(entries)]

    @pytest.mark.parametrize("layer", range(10))
    def test_layers_lie_where_python_says(self, redis, see, layer):
        fill_with_zeros(redis, layer, DEFAULT)

        assert see([A], [A], geometry=DEFAULT) == [0, 1]
        assert redis.strlen(FILTER) == math.ceil(bits(DEFAULT, layer + 1) / 8)
        begin, end = bits(DEFAULT, layer), bits(DEFAULT, layer + 1) - 1
        assert redis.bitcount(FILTER, begin, end, "BIT") == hashes(DEFAULT, layer)
        assert bits_set(redis) == hashes(DEFAULT, layer)

    def test_repeated_entry_writes_nothing(self, redis, see):
        see([A, B])
        before = redis.get(FILTER)
        see([A, B])

        assert redis.get(FILTER) == before
        assert struct.unpack(">I", before[:4]) == (2,)

    def test_time_to_live_is_set_once(self, redis, see):
        see([A], ttl_seconds=60)
        assert 50 < redis.ttl(FILTER) <= 60

        redis.expire(FILTER, 30)
        see([B], some_entries(capacity(SMALL, 3)), ttl_seconds=60)
        assert 20 < redis.ttl(FILTER) <= 30

    def test_lost_time_to_live_comes_back(self, redis, see):
        see([A])
        redis.persist(FILTER)
        see(some_entries(capacity(SMALL, 3)), ttl_seconds=60)

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
        assert redis.strlen(FILTER) == math.ceil(bits(SMALL, 1) / 8)
        assert redis.ttl(FILTER) > 0

    def test_filter_that_is_lost_starts_anew(self, redis, see):
        see([A, B])
        redis.delete(FILTER)

        assert see([A], [A]) == [0, 1]
        assert redis.ttl(FILTER) > 0

    def test_filter_of_another_rate_starts_anew(self, redis, see):
        see([A, B])

        assert see([A], [A], geometry=Geometry(rate=0.01, first_capacity=10)) == [0, 1]
        assert redis.getrange(FILTER, 0, 3) == struct.pack(">I", 1)
        assert redis.ttl(FILTER) > 0

    @pytest.mark.parametrize(
        "entry",
        [bytes(16), b"\xff" * 16, b"12345678" * 2, b"\0" * 6 + b"\xff" * 10],
        ids=["zeros", "ones", "equal halves", "zeros and ones"],
    )
    def test_odd_entries_set_as_many_bits_as_others(self, redis, see, entry):
        assert see([entry], [entry], [A], geometry=DEFAULT) == [0, 1, 0]
        redis.delete(FILTER)
        see([entry], geometry=DEFAULT)
        assert bits_set(redis) == hashes(DEFAULT, 0)

    @pytest.mark.parametrize(
        ("step", "growth"),
        [(0, 0), (-101, 99), (HALF, 0)],
        ids=["stay", "stay after a while", "there and back"],
    )
    def test_no_bit_is_met_twice(self, redis, see, step, growth):
        """The remainders of this hash give steps of 0, or of half the layer."""
        length = bits(DEFAULT, 1) - HEADER_BITS
        entry = b"".join(
            (n % length).to_bytes(size) for n, size in ((5, 6), (step, 5), (growth, 5))
        )
        see([entry], geometry=DEFAULT)

        assert bits_set(redis) == hashes(DEFAULT, 0)

    def test_what_no_string_can_hold_counts_as_new(self, redis, see):
        large = Geometry(rate=0.001, first_capacity=300_000)
        limit = redis.config_get("proto-max-bulk-len")
        redis.config_set("proto-max-bulk-len", "1mb")
        try:
            see([A], geometry=large)
            full = struct.pack(">I", capacity(large, 1))
            redis.setrange(FILTER, 0, full)

            assert see([A], [B], [B], geometry=large) == [1, 0, 0]
            assert redis.getrange(FILTER, 0, 3) == full
        finally:
            redis.config_set("proto-max-bulk-len", limit["proto-max-bulk-len"])


class TestJudgement:
    @pytest.mark.parametrize("rate", [0.01, 0.001])
    def test_false_repeats_are_no_more_than_the_rate(self, see, rate):
        entries = some_entries(30_000)
        chunks = [entries[n : n + 1000] for n in range(0, len(entries), 1000)]
        false_repeats = sum(see(*chunks, geometry=Geometry(rate=rate)))

        assert 0 < false_repeats <= rate * len(entries)

    def test_entry_that_was_seen_is_never_new(self, see):
        """Compared with a plain set; the filters grow often and are often wrong."""
        source = random.Random(2)
        pool = some_entries(1000)
        asked = [source.choice(pool) for _ in range(4000)]
        replies = see(*([entry] for entry in asked), geometry=Geometry(rate=0.1, first_capacity=3))

        seen = set()
        for entry, reply in zip(asked, replies, strict=True):
            assert reply or entry not in seen
            seen.add(entry)
        assert sum(replies) - (len(asked) - len(seen)) <= 0.1 * len(seen)
