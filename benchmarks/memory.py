"""Measure how much memory a pending counter takes in Redis."""

from __future__ import annotations

from django_redis import get_redis_connection

from benchmarks import databases
from benchmarks.flushing import HITS_PER_CALL, fill_buffer, pending_hits
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.numbers import Number
from django_hitcount.numbers import read_numbers

SIZE = 100_000
QUICK_SIZE = 5_000


def run(options: Options) -> list[Target]:
    size = QUICK_SIZE if options.quick else SIZE
    with databases.using(options.databases[0]), buffer("redis"):
        rows = _measure(pending_hits(size))
    print_table(f"Memory of {size:,} pending counters in Redis", ["", "bytes a counter"], rows)
    return []


def _measure(hits: list[NewHits]) -> list[list[str]]:
    client = get_redis_connection("hitcount")
    client.flushall()
    empty = _used_memory()
    fill_buffer(hits)
    pending = _used_memory()
    for start in range(0, len(hits), HITS_PER_CALL):
        read_numbers([Number(hit.key) for hit in hits[start : start + HITS_PER_CALL]])
    shown = _used_memory()
    return [
        ["pending, all time and one day", thousands((pending - empty) / len(hits))],
        ["the same and its running total", thousands((shown - empty) / len(hits))],
    ]


def _used_memory() -> int:
    used: int = get_redis_connection("hitcount").info("memory")["used_memory"]
    return used
