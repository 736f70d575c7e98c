"""One partition in Redis: its keys, their fields, and what it holds."""

from __future__ import annotations

import datetime
import time
import uuid

from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.counters.hits import AddressHash, AddressInterval, VisitorHashes

RUN_ID = "0123456789ab"
KEYS = RunKeys(3, RUN_ID)
GENERATION = f"{RUN_ID}:{uuid.UUID(int=7).hex}:1"
RECORDER = uuid.UUID(int=7)
TODAY = datetime.date(2026, 1, 1)
ANN = VisitorHashes("k1", b"a" * 16, (b"a" * 16,))
BOB = VisitorHashes("k1", b"b" * 16, (b"b" * 16,))
HOME = AddressHash(AddressInterval("2026-01-01", TODAY, TODAY), b"\x0b" + b"h" * 15)
AT_HOME = KEYS.addresses("2026-01-01", 0x0B)
VISITORS = "5:views:2026-01-01:k1:a"
A, B = "5:views:a", "5:views:b"
A_TODAY = "5:views:2026-01-01:a"
MODEL_TODAY = "5:views:2026-01-01"
NOW = b"now"
COUNTS, REPEAT, ADDRESS_LIMIT = 0, 1, 2
"""What record.lua answers about a hit."""


def content(redis):
    """All keys of the partition without their prefix, and their values. This moment is NOW."""
    found = {}
    for key in redis.keys("*"):
        name = key.decode().removeprefix("hitcount:{3}:").removeprefix(f"{RUN_ID}:")
        is_hash = redis.type(key) == b"hash"
        found[name] = with_now(redis.hgetall(key)) if is_hash else redis.get(key)
    return found


def with_now(fields):
    """The fields of a hash, with NOW in place of a moment of the last minute."""
    return {
        field: NOW
        if field in {b"since", b"claimed_at"} and 0 <= time.time() - int(value) < 60
        else value
        for field, value in fields.items()
    }
