"""What a Redis server reports about itself, and what is sent to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from redis import Redis

from django_hitcount.buffers.redis.keys import RunKeys, run_keys
from django_hitcount.buffers.redis.link import RUN_ID_LETTERS, BuiltCommand, Link, Reply
from django_hitcount.buffers.redis.server import RedisServer, raise_failures
from django_hitcount.counters.keys import CounterKey


def names_of(redis: Redis, key: CounterKey, partitions: int = 16) -> RunKeys:
    """The keys of a counter's partition, in the current run of the server."""
    return run_keys(key.partition(partitions), run_id(redis))


def run_id(redis: Redis) -> str:
    return str(redis.info("server")["run_id"])[:RUN_ID_LETTERS]


@contextmanager
def round_trips(redis: Redis) -> Iterator[Callable[[], int]]:
    """
    Count the requests that the server read, by its own statistics.

    A pipeline of some kilobytes is read at one go; see sends() for larger ones.
    """
    before = _reads(redis)
    after: list[int] = []
    yield lambda: after[0] - before - 1
    after.append(_reads(redis))


def _reads(redis: Redis) -> int:
    return int(redis.info("stats")["total_reads_processed"])


@contextmanager
def sends() -> Iterator[Callable[[], int]]:
    """Count how often the client sent something and then waited for the answer."""
    calls = []
    original = Link.exchange

    def counting(self: Link, *args: Any) -> bool:
        calls.append(args)
        return original(self, *args)

    with mock.patch.object(Link, "exchange", counting):
        yield lambda: len(calls)


def replies_to(server: RedisServer, commands: Sequence[BuiltCommand]) -> list[Reply]:
    """The replies to commands; raises the first exception among them."""
    return raise_failures(server.send_unguarded(lambda link: commands).replies)
