"""What could make RedisBuffer lose hits, seen from its settings and its server."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from redis.connection import parse_url

from django_hitcount import conf
from django_hitcount.buffers.exchange import Exchange
from django_hitcount.exceptions import BufferUnavailable


def check(exchange: Exchange) -> Iterator[CheckMessage]:
    """Check the cache alias, then the server behind it; costs one round trip."""
    yield from _check_shared()
    try:
        _, info = exchange.run_all([("PING",), ("INFO", "memory")])
    except BufferUnavailable as exc:
        yield _unreachable(exc)
    else:
        yield from _check_eviction(info)


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


def _check_eviction(info: bytes) -> Iterator[CheckMessage]:
    """W003: hits have no TTL, so that only an allkeys policy would evict them."""
    policy = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line).get(
        "maxmemory_policy", ""
    )
    if policy.startswith("allkeys-"):
        yield CheckWarning(
            f"Redis evicts any key when memory runs out (maxmemory-policy {policy}), pending "
            "hits among them.",
            hint="Set maxmemory-policy to noeviction.",
            id="django_hitcount.W003",
        )
