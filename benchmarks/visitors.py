"""Measure how well filters and HyperLogLog distinguish visitors, and their memory and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

from django_redis import get_redis_connection

from benchmarks.options import Options
from benchmarks.report import Target, print_table, thousands
from benchmarks.timing import seconds_of
from django_hitcount.buffers.redis.scripts import Command
from django_hitcount.buffers.redis.server import RedisServer
from tests.buffers.redis.filters import see_command
from tests.redis_server import replies_to

MOST_MISJUDGED = 1 / 10_000
MOST_BITS = 30

KEY = "benchmark:visitors"
KEY_SECONDS = 24 * 3600
HASHES_PER_CALL = 250
CALLS_AT_A_TIME = 20
SMALLEST_STEP = 20
STEPS_OF_EACH_SIZE = 50
"""How often a filter is measured until it has twice as many visitors."""

Send = Callable[[Sequence[bytes]], Command]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What was measured when a number of different visitors have come."""

    visitors: int
    misjudged: int
    seconds: float
    string_bits: int
    memory_bits: int

    def row(self) -> list[str]:
        return [
            thousands(self.visitors),
            thousands(self.misjudged),
            f"{10_000 * self.misjudged / self.visitors:.2f}",
            f"{self.string_bits / self.visitors:.2f}",
            f"{self.memory_bits / self.visitors:.2f}",
            thousands(self.visitors / self.seconds),
        ]


HEADER = ["visitors", "misjudged", "in 10,000", "bits each", "with overhead", "visitors/s"]


def run(options: Options) -> list[Target]:
    return [*_measure_filter(options.visitors), *_measure_sketch(options.visitors)]


def _measure_filter(visitors: int) -> list[Target]:
    *full, last = _fill(visitors)
    print_table(
        "One filter, each time before it grows", HEADER, [row.row() for row in (*full, last)]
    )
    return [
        Target(
            what="filter: misjudged / visitors * 10,000",
            ratio=max(row.misjudged / row.visitors for row in (*full, last)) * 10_000,
            at_most=MOST_MISJUDGED * 10_000,
        ),
        Target(
            what="filter: bits a visitor before it grows, at most",
            ratio=max(row.memory_bits / row.visitors for row in full or [last]),
            at_most=MOST_BITS,
        ),
    ]


def _fill(visitors: int) -> Iterator[Progress]:
    """Let different visitors come. Yield what was measured before each growth, and at the end."""
    see = partial(see_command, KEY, ttl_seconds=KEY_SECONDS)
    client = get_redis_connection("hitcount")
    client.delete(KEY)
    end, misjudged, seconds = 0, 0, 0.0
    before: Progress | None = None
    while end < visitors:
        start, end = end, min(end + max(SMALLEST_STEP, end // STEPS_OF_EACH_SIZE), visitors)
        more, took = _send(see, start, end)
        misjudged += sum(more)
        seconds += took
        now = Progress(
            visitors=end,
            misjudged=misjudged,
            seconds=seconds,
            string_bits=8 * client.strlen(KEY),
            memory_bits=8 * client.memory_usage(KEY),
        )
        if before and before.string_bits < now.string_bits:
            yield before
        before = now
    if before:
        yield before


def _measure_sketch(visitors: int) -> list[Target]:
    client = get_redis_connection("hitcount")
    client.delete(KEY)
    _, seconds = _send(lambda hashes: ("PFADD", KEY, *hashes), 0, visitors)
    error = abs(client.pfcount(KEY) / visitors - 1)
    row = [
        f"{100 * error:.2f} %",
        thousands(client.memory_usage(KEY)),
        thousands(visitors / seconds),
    ]
    print_table(
        "HyperLogLog of the same visitors",
        ["visitors", "error", "bytes", "visitors/s"],
        [[thousands(visitors), *row]],
    )
    return []


def _send(command: Send, start: int, end: int) -> tuple[list[Any], float]:
    """Send the hashes of visitors start .. end; return the replies, and the seconds it took."""
    server = RedisServer("hitcount", timeout_seconds=60)
    replies: list[Any] = []
    seconds = 0.0
    step = HASHES_PER_CALL * CALLS_AT_A_TIME
    for first in range(start, end, step):
        hashes = [_hash(n) for n in range(first, min(first + step, end))]
        calls = [
            command(hashes[n : n + HASHES_PER_CALL]) for n in range(0, len(hashes), HASHES_PER_CALL)
        ]
        seconds += seconds_of(lambda calls=calls: replies.extend(replies_to(server, calls)))
    return replies, seconds


def _hash(visitor: int) -> bytes:
    """A keyed hash, as the package makes it of a visitor."""
    return blake2b(visitor.to_bytes(8), digest_size=16, key=b"benchmark").digest()
