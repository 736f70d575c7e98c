"""Delete an object while many hits wait in Redis, and measure how long others wait for Redis."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings
from redis import Redis

from benchmarks import databases
from benchmarks.app.models import Article
from benchmarks.options import Options, buffer
from benchmarks.report import print_table, thousands
from django_hitcount.maintenance import flushing
from django_hitcount.recording import record_hit
from tests.servers import HOST, Valkey

PENDING, QUICK_PENDING = (100_000, 500_000), (1_000,)
AT_A_TIME = 10_000


def run(options: Options, alias: str, valkey: Valkey) -> None:
    """Print how long a delete takes, and how long others wait for Redis meanwhile."""
    location = f"redis://{HOST}:{valkey.port}/3"
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location}
    caches = override_settings(CACHES={"default": cache, "hitcount": cache})
    with databases.using(alias), caches, buffer("redis"), valkey.client() as redis:
        redis.execute_command("SELECT", 3)
        rows = [_row(redis, n) for n in (QUICK_PENDING if options.quick else PENDING)]
    print_table(
        "An object is deleted, in ms",
        ["counters that wait in its partition", "delete()", "slowest PING", "slowest command"],
        rows,
    )


def _row(redis: Redis, pending: int) -> list[str]:
    redis.flushdb()
    article = Article.objects.create(title="Measured")
    record_hit(article)
    (name,) = (key for key in redis.keys("hitcount:*pending") if redis.type(key) == b"hash")
    (field,) = (found.decode() for found in redis.hkeys(name) if found.startswith(b"d:"))
    day = field.rpartition(":")[0]
    for start in range(0, pending, AT_A_TIME):
        fields = {f"{day}:x{n}": 1 for n in range(start, start + min(AT_A_TIME, pending))}
        redis.hset(name, mapping=fields)
    redis.hset(name, "counters", pending)
    redis.config_set("slowlog-log-slower-than", 100)
    redis.slowlog_reset()
    with _pings(redis) as pings:
        began_at = time.monotonic()
        article.delete()
        seconds = time.monotonic() - began_at
    slowest = max((entry["duration"] for entry in redis.slowlog_get(128)), default=0) / 1e6
    redis.flushdb()
    flushing.flush()
    figures = seconds, max(pings), slowest
    return [thousands(pending), *(f"{figure * 1000:,.1f}" for figure in figures)]


@contextmanager
def _pings(redis: Redis) -> Iterator[list[float]]:
    """Send a PING each millisecond, and yield the list of how long each takes, in seconds."""
    seconds = [0.0]
    is_over = threading.Event()
    with Redis(HOST, redis.connection_pool.connection_kwargs["port"], socket_timeout=60) as other:

        def ping() -> None:
            while not is_over.wait(0.001):
                began_at = time.monotonic()
                other.ping()
                seconds.append(time.monotonic() - began_at)

        thread = threading.Thread(target=ping)
        thread.start()
        try:
            yield seconds
        finally:
            is_over.set()
            thread.join()
