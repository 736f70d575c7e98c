"""
Many writers at once.

They are processes with a few threads each, as on a site. There are more processes than cores, so
that the benchmark does not measure Python's interpreter lock.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Self

import django

PROCESSES = 8
THREADS = 4
WRITERS = PROCESSES * THREADS
WARM_UP_WRITES = 20
START_SECONDS = 60

_barrier: Barrier


class Crowd:
    """Writers that are started once, and then write as often as needed."""

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            PROCESSES, context, initializer=_set_up, initargs=(context.Barrier(WRITERS),)
        )
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown()

    def write(self, index: int, alias: str, pk: int, seconds: float) -> tuple[int, float]:
        """Let all writers count on one article; return the number of hits, and hits per second."""
        jobs = [
            self._pool.submit(_write_in_threads, index, alias, pk, seconds)
            for _ in range(PROCESSES)
        ]
        counts, rates = zip(*(job.result() for job in jobs), strict=True)
        return sum(counts), sum(rates)


def _set_up(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier
    django.setup()


def _write_in_threads(index: int, alias: str, pk: int, seconds: float) -> tuple[int, float]:
    from benchmarks import databases
    from benchmarks.contenders import ALL
    from benchmarks.options import buffer

    with (
        databases.using(alias),
        buffer(ALL[index].buffer),
        ThreadPoolExecutor(THREADS) as threads,
    ):
        jobs = [threads.submit(_write, index, pk, seconds) for _ in range(THREADS)]
        counts, rates = zip(*(job.result() for job in jobs), strict=True)
    return sum(counts), sum(rates)


def _write(index: int, pk: int, seconds: float) -> tuple[int, float]:
    from django.db import connections

    from benchmarks.app.models import Article
    from benchmarks.contenders import ALL

    write = ALL[index].writer(Article.objects.get(pk=pk))
    for _ in range(WARM_UP_WRITES):
        write()
    _barrier.wait(START_SECONDS)
    start, count = time.perf_counter(), 0
    while (now := time.perf_counter()) < start + seconds:
        write()
        count += 1
    connections.close_all()
    return WARM_UP_WRITES + count, count / (now - start)
