"""What the scripts return that read batches, their names, totals, and what waits."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import (
    A_TODAY,
    B_TODAY,
    GENERATION,
    KEYS,
    A,
    B,
    batch,
    content,
)

NAME = f"{GENERATION}:7"


class TestReadBatch:
    @pytest.fixture
    def read(self, call):
        return lambda name, cursor=0, count=1000: call(
            "read_batch", [KEYS.batch], name, cursor, count
        )

    @pytest.fixture(autouse=True)
    def held(self, redis):
        redis.hset(KEYS.batch, mapping=batch(7, A_TODAY, B_TODAY))

    def test_fields(self, read):
        cursor, flat = read(NAME)

        assert cursor == b"0"
        assert dict(zip(flat[::2], flat[1::2], strict=True)) == {
            A_TODAY.encode(): b"1",
            B_TODAY.encode(): b"1",
            b"id": NAME.encode(),
        }

    def test_fields_in_pieces(self, redis, read):
        fields = {f"{A_TODAY}{n}" for n in range(2000)}
        redis.hset(KEYS.batch, mapping=batch(7, *fields))
        found, pieces, cursor = set(), 0, 0
        while cursor != b"0":
            cursor, flat = read(NAME, cursor, 100)
            found |= {field.decode() for field in flat[::2]}
            pieces += 1

        assert found == {*fields, A_TODAY, B_TODAY, "id"}
        assert 10 < pieces <= 40

    @pytest.mark.parametrize("name", [f"{GENERATION}:8", "another:7", "", "rubbish"])
    def test_another_batch(self, read, name):
        assert read(name) is None

    @pytest.mark.parametrize("name", ["rubbish", "x:007", ""])
    def test_batch_with_a_foreign_name(self, redis, read, name):
        redis.hset(KEYS.batch, "id", name)

        assert read(name) is None

    def test_no_batch(self, redis, read):
        redis.delete(KEYS.batch)
        assert read(NAME) is None

        redis.rpush(KEYS.batch, "somebody else's")
        assert read(NAME) is None


def put_strange(redis, key):
    redis.rpush(key, "somebody else's")


@pytest.mark.parametrize(
    ("put", "name"),
    [
        (lambda redis, key: redis.hset(key, mapping=batch(7, A_TODAY)), NAME.encode()),
        (lambda redis, key: redis.hset(key, A_TODAY, 1), None),
        (lambda redis, key: redis.hset(key, "id", "x:007"), None),
        (lambda redis, key: None, None),
        (put_strange, None),
    ],
)
def test_names_of_batches(redis, call, put, name):
    redis.hset(KEYS.pending, mapping=batch(8, A_TODAY))
    put(redis, KEYS.batch)
    other = f"{GENERATION}:8".encode()

    assert call("held_totals", [KEYS.batch, KEYS.pending]) == [[name], [other]]
    assert call("held_totals", [KEYS.pending, KEYS.batch]) == [[other], [name]]


class TestReadTotals:
    PLACE = (KEYS.batch, KEYS.pending, KEYS.epoch, KEYS.runs)

    @pytest.fixture
    def read(self, call):
        def run(*names):
            counters = [part for name in names for part in name.rsplit(":", 1)]
            return call("read_totals", [*self.PLACE, *map(KEYS.total, names)], 3, *counters)

        return run

    def test_nothing(self, read):
        assert read() == [b"3", None, [], [None], [None]]
        assert read(A, B) == [b"3", None, [None, None], *[[None, b"0", b"0"]] * 2]

    def test_values(self, redis, read):
        redis.hset(KEYS.batch, mapping=batch(7, A_TODAY))
        redis.mset({KEYS.epoch: 5, KEYS.runs: "one two", KEYS.total(B): 9})

        of_a = [NAME.encode(), b"0"], [None, b"0"]
        assert read(A, B) == [b"5", b"one two", [None, b"9"], *of_a]

    def test_what_is_not_ours_is_nil(self, redis, read):
        redis.hset(KEYS.batch, mapping={A_TODAY: 1, "id": "rubbish"})
        for key in (KEYS.epoch, KEYS.runs, KEYS.total(A)):
            put_strange(redis, key)

        assert read(A) == [b"3", None, [None], *[[None, b"0"]] * 2]

    @pytest.mark.parametrize("number", [1000, 1001, 15_000])
    def test_any_number_of_totals(self, redis, read, number):
        names = [f"5:views:{n}" for n in range(number)]
        redis.mset({KEYS.total(name): n for n, name in enumerate(names)})

        assert read(*names)[2] == [str(n).encode() for n in range(number)]
        redis.delete(KEYS.total(names[-1]))
        assert read(*names)[2][-1] is None


class TestWaiting:
    @pytest.fixture
    def read(self, call):
        return lambda: call("waiting", [KEYS.pending, KEYS.batch])

    def test_nothing(self, redis, read):
        assert read() == [0, None, None, None]

    def test_pending_and_claimed(self, redis, read):
        redis.hset(KEYS.pending, mapping=batch(8, A_TODAY, counters=3, since=1000))
        redis.hset(KEYS.batch, mapping=batch(7, counters=4, since=900, claimed_at=950))
        before = content(redis)

        assert read() == [7, 1000, 900, 950]
        assert content(redis) == before

    @pytest.mark.parametrize("value", ["rubbish", "-1", "1.5", "", "9" * 11])
    def test_what_is_not_ours_is_nil(self, redis, read, value):
        redis.hset(KEYS.pending, mapping=dict.fromkeys(("counters", "since"), value))
        put_strange(redis, KEYS.batch)

        assert read() == [0, None, None, None]
