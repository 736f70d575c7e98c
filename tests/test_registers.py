"""The tests know which visitors a sketch cannot tell apart."""

from __future__ import annotations

import pytest

from tests import children
from tests.registers import MOST_APART, REGISTERS, ApartHashes, register_of


@pytest.mark.parametrize("length", [1, 7, 8, 16, 21])
def test_redis_counts_values_of_one_register_as_one(redis, length):
    by_register: dict[int, bytes] = {}
    pairs = []
    for number in range(3000):
        value = number.to_bytes(2, "big").rjust(length, b"v")[-length:]
        other = by_register.setdefault(register_of(value), value)
        if other != value:
            pairs.append((other, value))
    apart = list(by_register.values())[:100]

    assert pairs or length == 1
    for number, pair in enumerate(pairs):
        redis.pfadd(f"pair {number}", *pair)
        assert redis.pfcount(f"pair {number}") == 1
    redis.pfadd("apart", *apart)
    assert redis.pfcount("apart") == len(apart)


def test_hashes_of_a_counter_are_kept_apart():
    hashes = ApartHashes(lambda text, key: bytes([len(text), key]))
    visitors = [b"%d\0counter" % number for number in range(10)]

    made = [hashes(visitor, 1) for visitor in visitors]

    assert len({register_of(value) for value in made}) == 10
    assert [hashes(visitor, 1) for visitor in visitors] == made
    assert hashes(b"0\0other", 1) == bytes([len(b"0\0other"), 1])
    assert hashes(b"address\0\0counter", 1) == bytes([len(b"address\0\0counter"), 1])


def test_children_hash_what_they_do_not_know_like_each_other():
    hashes = ApartHashes(lambda text, key: bytes([len(text)]))
    known = hashes(b"1\0counter", None), hashes(b"2\0counter", None)

    def hash_in_child() -> None:
        assert (hashes(b"1\0counter", None), hashes(b"2\0counter", None)) == known
        assert hashes(b"3\0counter", None) == bytes([len(b"3\0counter")])

    assert children.run(hash_in_child) == 0


def test_no_more_are_kept_apart_than_there_is_room_for():
    hashes = ApartHashes(lambda text, key: text)
    assert MOST_APART < REGISTERS / 2
    assert len({hashes(b"%d\0counter" % number, None) for number in range(20_000)}) == 20_000
