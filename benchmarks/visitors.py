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
from django_hitcount.buffers.redis.bloom import BITS_PER_HALVING, TIGHTENING, Geometry
from django_hitcount.buffers.redis.scripts import Command
from django_hitcount.buffers.redis.server import RedisServer
from tests.buffers.redis.filters import HEADER_BITS, capacity, see_command
from tests.redis_server import replies_to

RATE = 0.001
MOST_BITS = 24

REFERENCE_VISITORS = 10_000_000
REFERENCE_BITS = 20
"""Bits per visitor of the design to compare with, which misjudges 7,017 visitors."""

REFERENCE_MISJUDGED = 7_017
MOST_MISJUDGED = 200

KEY = "benchmark:visitors"
KEY_SECONDS = 24 * 3600
HASHES_PER_CALL = 250
CALLS_AT_A_TIME = 20

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
            f"{1000 * self.misjudged / self.visitors:.2f}",
            f"{self.string_bits / self.visitors:.2f}",
            f"{self.memory_bits / self.visitors:.2f}",
            thousands(self.visitors / self.seconds),
        ]


HEADER = ["visitors", "misjudged", "in 1,000", "bits each", "with overhead", "visitors/s"]


def run(options: Options) -> list[Target]:
    return [
        *_measure_growing(options.visitors),
        *_measure_reference(options.visitors),
        *_measure_sketch(options.visitors),
    ]


def _measure_growing(visitors: int) -> list[Target]:
    geometry = Geometry(rate=RATE)
    full = _sizes_when_full(geometry, visitors)
    known = [*_fill(geometry, [*full, visitors])]
    print_table(
        f"One filter that grows, 1 in {1 / RATE:,.0f} misjudged at most, each time a layer is full",
        HEADER,
        [progress.row() for progress in known],
    )
    return [
        Target(
            what="growing filter: misjudged / visitors * 1,000",
            ratio=1000 * max(progress.misjudged / progress.visitors for progress in known),
            at_most=1000 * RATE,
        ),
        Target(
            what="growing filter: bits a visitor when a layer is full, at most",
            ratio=max(progress.memory_bits / progress.visitors for progress in known[:-1] or known),
            at_most=MOST_BITS,
        ),
    ]


def _sizes_when_full(geometry: Geometry, visitors: int) -> list[int]:
    sizes = []
    while (visitors_when_full := capacity(geometry, len(sizes) + 1)) < visitors:
        sizes.append(visitors_when_full)
    return sizes


def _measure_reference(visitors: int) -> list[Target]:
    (progress,) = _fill(_of_reference_size(visitors), [visitors])
    share = REFERENCE_VISITORS / visitors
    print_table(
        f"One filter of {REFERENCE_BITS * visitors / 1e6:,.0f} Mbit, made for all visitors",
        [*HEADER, "misjudged in 10 M", "reference design"],
        [[*progress.row(), thousands(progress.misjudged * share), thousands(REFERENCE_MISJUDGED)]],
    )
    return [
        Target(
            what=f"filter of {REFERENCE_BITS} bits a visitor: misjudged in 10,000,000",
            ratio=progress.misjudged * share,
            at_most=MOST_MISJUDGED,
        )
    ]


def _of_reference_size(visitors: int) -> Geometry:
    """The best filter of one layer that has as many bits as the design to compare with."""
    bits = REFERENCE_BITS - (HEADER_BITS + 1) / visitors
    rate_of_layer = 2 ** (-bits / BITS_PER_HALVING)
    return Geometry(rate=rate_of_layer / (1 - TIGHTENING), first_capacity=visitors)


def _fill(geometry: Geometry, sizes: Sequence[int]) -> Iterator[Progress]:
    """Let different visitors come, and yield what was measured at each of ``sizes``."""

    see = partial(see_command, KEY, geometry=geometry, ttl_seconds=KEY_SECONDS)

    client = get_redis_connection("hitcount")
    client.delete(KEY)
    misjudged, seconds = 0, 0.0
    for start, end in zip([0, *sizes], sizes, strict=False):
        more, took = _send(see, start, end)
        misjudged += sum(more)
        seconds += took
        yield Progress(
            visitors=end,
            misjudged=misjudged,
            seconds=seconds,
            string_bits=8 * client.strlen(KEY),
            memory_bits=8 * client.memory_usage(KEY),
        )


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
