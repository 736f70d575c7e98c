"""What the scripts return that read batches and their names."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import (
    A_TODAY,
    B_TODAY,
    GENERATION,
    KEYS,
    batch,
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

    for keys, names in (
        ((KEYS.batch, KEYS.pending), [[other], [name]]),
        ((KEYS.pending, KEYS.batch), [[name], [other]]),
    ):
        assert call("read_hits", [*keys, KEYS.runs], 0, "", "", "5:views", ":a")[2] == names
