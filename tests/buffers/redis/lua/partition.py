"""One partition in Redis: its keys, their fields, and what it holds."""

from __future__ import annotations

import datetime
import time
import uuid

from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.counters.hits import AddressHash, VisitorHashes

RUN_ID = "0123456789ab"
KEYS = RunKeys(3, RUN_ID)
GENERATION = f"{RUN_ID}:{uuid.UUID(int=7).hex}:1"
RECORDER = uuid.UUID(int=7)
TODAY = datetime.date(2026, 1, 1)
ANN = VisitorHashes("k1", b"a" * 16, (b"a" * 16,))
BOB = VisitorHashes("k1", b"b" * 16, (b"b" * 16,))
HOME = AddressHash("2026-01-01", TODAY, b"\x0b" + b"h" * 15)
AT_HOME = KEYS.addresses("2026-01-01", 0x0B)
VISITORS = "5:views:2026-01-01:k1:a"
VISITORS_FIELD = f"v:{VISITORS}"
A, B = "5:views:a", "5:views:b"
MODEL_TODAY = "5:views:2026-01-01"
A_TODAY, B_TODAY = f"d:{MODEL_TODAY}:a", f"d:{MODEL_TODAY}:b"
NOW = b"now"
REMEMBERED_SECONDS = 7 * 24 * 3600
COUNTS, REPEAT, ADDRESS_LIMIT = 0, 1, 2
"""What record.lua answers about a hit."""


def day_number(days_ago=0):
    """A day as in the hash ``sequence``: days since 1970."""
    return int(time.time() // 86400) - days_ago


def moment(days_ago=0):
    """A moment as beside the number of a command: seconds since 1970."""
    return int(time.time()) - 24 * 3600 * days_ago


def batch(number, *fields, generation=GENERATION, **more):
    """A hash of hits, which is or becomes a batch. Each of ``fields`` has one hit."""
    return {**dict.fromkeys(fields, 1), **more, "id": f"{generation}:{number}"}


def content(redis):
    """All keys of the partition without their prefix, and their values. This moment is NOW."""
    prefix = KEYS.malformed.removesuffix("malformed")
    found = {}
    for key in redis.keys("*"):
        name = key.decode().removeprefix(prefix).removeprefix(f"{RUN_ID}:")
        is_hash = redis.type(key) == b"hash"
        found[name] = with_now(redis.hgetall(key)) if is_hash else redis.get(key)
    return found


def with_now(fields):
    """The fields of a hash, with NOW in place of a moment of the last minute, and of today."""
    found = {field: NOW if is_now(field, value) else value for field, value in fields.items()}
    recorder = RECORDER.hex.encode()
    if recorder in found:
        number, *last_at = found[recorder].split()
        found[recorder] = b" ".join([number, *(NOW if is_recent(at) else at for at in last_at)])
    return found


def is_now(field, value):
    if field in {b"since", b"claimed_at"}:
        return is_recent(value)
    return field == b"day" and int(value) in (day_number(), day_number(1))


def is_recent(seconds):
    return 0 <= time.time() - int(seconds) < 60


def fields_of(redis, name):
    """The fields of a hash of the partition that hold hits."""
    found = redis.hgetall(getattr(KEYS, name))
    return {field.decode(): value for field, value in found.items() if field[1:2] == b":"}
