"""
Hashes of visitors, no two of which share a register of a sketch.

A sketch (Redis calls it HyperLogLog) has 16,384 registers. Two visitors share one with a chance of
1 in 16,384, and count as one. Over all the visitors that the tests compare with an exact number,
that would happen in one of 25 runs.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable

REGISTERS = 2**14
SEED = 0xADC83B19
MULTIPLIER = 0xC6A4A7935BD1E995
MOST_APART = 1000
"""How many hashes of one counter are kept apart. Tests of more visitors allow for an error."""

ADDRESS = b"address\0"
"""Hashes of addresses begin with it. They are in no sketch."""

_MASK = 2**64 - 1


def register_of(value: bytes) -> int:
    """
    The register that Redis chooses for a value.

    Source: MurmurHash64A by Austin Appleby, with the seed and the bits that Redis uses.
    """
    hashed = SEED ^ (len(value) * MULTIPLIER & _MASK)
    whole = len(value) // 8 * 8
    for start in range(0, whole, 8):
        part = int.from_bytes(value[start : start + 8], "little") * MULTIPLIER & _MASK
        part = (part ^ part >> 47) * MULTIPLIER & _MASK
        hashed = (hashed ^ part) * MULTIPLIER & _MASK
    if value[whole:]:
        hashed = (hashed ^ int.from_bytes(value[whole:], "little")) * MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 47) * MULTIPLIER & _MASK
    return (hashed ^ hashed >> 47) % REGISTERS


class ApartHashes:
    """
    Stands in for a function that hashes a visitor of a counter under a key.

    If another visitor of the counter has the same register, hashes again. The same visitor always
    has the same hash, in forked children, too: they know what was hashed before, and do not hash
    again, since they do not know of each other.
    """

    def __init__(self, hash_text: Callable[[bytes, object], bytes]) -> None:
        self._hash_text = hash_text
        self._process = os.getpid()
        self._made: dict[tuple[bytes, object], bytes] = {}
        self._taken: defaultdict[bytes, set[int]] = defaultdict(set)

    def __call__(self, text: bytes, key: object) -> bytes:
        made = self._made.get((text, key))
        if made is None:
            # Of two threads that hash one visitor, the first one decides.
            made = self._made.setdefault((text, key), self._hash_apart(text, key))
        return made

    def _hash_apart(self, text: bytes, key: object) -> bytes:
        *_, counter = text.rpartition(b"\0")
        taken = self._taken[counter]
        made = self._hash_text(text, key)
        if text.startswith(ADDRESS) or os.getpid() != self._process:
            return made
        while register_of(made) in taken and len(taken) < MOST_APART:
            text += b"\0"
            made = self._hash_text(text, key)
        taken.add(register_of(made))
        return made
