"""System checks of RedisBuffer: settings, of Django and of the server, with which it loses hits."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from redis.connection import parse_url

from django_hitcount import conf
from django_hitcount.buffers.redis.link import UNKNOWN_RUN
from django_hitcount.buffers.redis.server import RedisServer, raise_failures
from django_hitcount.exceptions import BufferUnavailable


def check_server(redis: RedisServer) -> Iterator[CheckMessage]:
    """
    Check the server. Costs one round trip.

    W001: Redis is away. W003: it may evict pending hits; they have no TTL, so only allkeys policies
    do so. W005: a crash loses hits. W006: a restart from an older state goes unnoticed.
    """
    try:
        run_id, (pong, info) = redis.send_unguarded(lambda link: [("PING",), ("INFO",)])
        raise_failures([pong])
    except BufferUnavailable as exc:
        yield CheckWarning(
            f"{exc} (cache alias {conf.get_config().redis!r})",
            hint="Start Redis, or correct the LOCATION of the alias. Until you fix it, each hit is "
            "written to the database.",
            id="django_hitcount.W001",
        )
        return
    lines = info.decode().splitlines() if isinstance(info, bytes) else ()  # Or it is not allowed.
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    policy = values.get("maxmemory_policy", "")
    if policy.startswith("allkeys-"):
        yield CheckWarning(
            f"Redis evicts any key when memory runs out (maxmemory-policy {policy}), including "
            "pending hits.",
            hint="Set maxmemory-policy to noeviction.",
            id="django_hitcount.W003",
        )
    if values.get("aof_enabled") == "0":
        yield CheckWarning(
            "Redis does not write each change to disk (appendonly is off). A crash loses the hits "
            "since its last snapshot, if it makes any, that were not flushed.",
            hint="Set appendonly to yes.",
            id="django_hitcount.W005",
        )
    if run_id == UNKNOWN_RUN:
        yield CheckWarning(
            "Redis does not report its run_id, so its restarts go unnoticed. Hits may be lost if "
            "it starts from an older state.",
            hint="Allow the user of the cache alias to run INFO, including its section 'server'.",
            id="django_hitcount.W006",
        )


def check_alias() -> Iterator[CheckMessage]:
    """W002: clearing another cache in the same Redis database deletes pending hits."""
    alias = conf.get_config().redis or ""
    databases = {name: _databases(cache.get("LOCATION")) for name, cache in settings.CACHES.items()}
    sharing = [name for name in databases if name != alias and databases[name] & databases[alias]]
    if alias == "default":
        sharing.append(alias)
    if sharing:
        yield CheckWarning(
            f"The Redis database of the buffer is also the cache {', '.join(map(repr, sharing))}. "
            "cache.clear() would delete all pending hits.",
            hint=(
                "Give the buffer a cache alias and a Redis database number of its own, and set "
                "HITCOUNT['REDIS'] to the alias."
            ),
            id="django_hitcount.W002",
        )


def _databases(location: object) -> set[tuple[object, ...]]:
    """Return a value for each Redis database in LOCATION. Different spellings give the same one."""
    urls = location if isinstance(location, list | tuple) else str(location).split(",")
    found: set[tuple[object, ...]] = set()
    for url in map(str, urls):
        if url.startswith(("redis://", "rediss://", "unix://")):
            try:
                options = parse_url(url)  # type: ignore[no-untyped-call]
            except ValueError:
                continue  # Using that cache raises the same error.
            server = options.get("path") or (options.get("host"), options.get("port", 6379))
            found.add((server, options.get("db", 0)))
    return found
