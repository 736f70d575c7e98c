"""What could make RedisBuffer lose hits, seen from its settings and its server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from redis.connection import parse_url

from django_hitcount import conf
from django_hitcount.buffers.redis.transport import UNKNOWN_RUN, RedisTransport, Reply, checked
from django_hitcount.exceptions import BufferUnavailable


def check(exchange: RedisTransport) -> Iterator[CheckMessage]:
    """Check the cache alias, then the server behind it; costs one round trip."""
    yield from _check_shared()
    try:
        run_id, (pong, info, save) = exchange.run(
            lambda run_id: [("PING",), ("INFO",), ("CONFIG", "GET", "save")]
        )
        checked([pong])
    except BufferUnavailable as exc:
        yield _unreachable(exc)
        return
    values = _values(info) if isinstance(info, bytes) else {}  # Else the server may not tell.
    yield from _check_eviction(values)
    yield from _check_persistence(values, save)
    yield from _check_run_id(run_id)


def _values(info: bytes) -> dict[str, str]:
    return dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)


def _unreachable(exc: BufferUnavailable) -> CheckMessage:
    alias = conf.get_config().cache_alias
    return CheckWarning(
        f"{exc} (cache alias {alias!r})",
        hint="Start Redis, or correct the LOCATION of the alias. Until then each hit is written "
        "to the database.",
        id="django_hitcount.W001",
    )


def _check_shared() -> Iterator[CheckMessage]:
    """W002: whoever clears another cache on the same Redis database deletes pending hits."""
    alias = conf.get_config().cache_alias
    databases = {name: _databases(cache.get("LOCATION")) for name, cache in settings.CACHES.items()}
    sharing = [name for name in databases if name != alias and databases[name] & databases[alias]]
    if alias == "default":
        sharing.append(alias)
    if sharing:
        yield CheckWarning(
            f"The Redis database of the buffer is also the cache {', '.join(map(repr, sharing))}: "
            "cache.clear() would delete all hits that wait there.",
            hint=(
                "Give the buffer a cache alias and a Redis database number of its own, and name "
                "the alias in HITCOUNT['CACHE_ALIAS']."
            ),
            id="django_hitcount.W002",
        )


def _databases(location: object) -> set[tuple[object, ...]]:
    """What distinguishes the Redis databases that LOCATION names, in any of its spellings."""
    urls = location if isinstance(location, list | tuple) else str(location).split(",")
    found: set[tuple[object, ...]] = set()
    for url in map(str, urls):
        if url.startswith(("redis://", "rediss://", "unix://")):
            try:
                options = parse_url(url)  # type: ignore[no-untyped-call]
            except ValueError:
                continue  # Whoever uses that cache will hear of it.
            server = options.get("path") or (options.get("host"), options.get("port", 6379))
            found.add((server, options.get("db", 0)))
    return found


def _check_eviction(info: Mapping[str, str]) -> Iterator[CheckMessage]:
    """W003: hits have no TTL, so that only an allkeys policy would evict them."""
    policy = info.get("maxmemory_policy", "")
    if policy.startswith("allkeys-"):
        yield CheckWarning(
            f"Redis evicts any key when memory runs out (maxmemory-policy {policy}), pending "
            "hits among them.",
            hint="Set maxmemory-policy to noeviction.",
            id="django_hitcount.W003",
        )


def _check_persistence(info: Mapping[str, str], save: Reply) -> Iterator[CheckMessage]:
    """W005: a crash takes Redis back to its last snapshot."""
    if _has_snapshots(save) and info.get("aof_enabled") == "0":
        yield CheckWarning(
            "Redis keeps hits in snapshots alone (save is on, appendonly is off): a crash loses "
            "the hits since the last one that were not flushed.",
            hint="Set appendonly to yes.",
            id="django_hitcount.W005",
        )


def _has_snapshots(reply: Reply) -> bool:
    """What CONFIG GET says; as a list or, in version 3 of the protocol, as a map."""
    if isinstance(reply, BufferUnavailable):
        return False  # The server may not tell.
    values = reply.values() if isinstance(reply, dict) else reply[1::2]
    return any(values)


def _check_run_id(run_id: str) -> Iterator[CheckMessage]:
    """W006: nobody notices if Redis goes back in time."""
    if run_id == UNKNOWN_RUN:
        yield CheckWarning(
            "Redis does not say its run_id, so that nobody notices if it is started anew: hits "
            "may be lost when it starts from an older state.",
            hint="Let the user of the cache alias run INFO, and do not hide its section 'server'.",
            id="django_hitcount.W006",
        )
