"""Throttles in Redis: a key per name, which expires when the interval ends."""

from __future__ import annotations

from django_hitcount.buffers.redis.buffer import RedisBuffer
from django_hitcount.buffers.redis.keys import throttle_key
from django_hitcount.buffers.throttling import admit


@admit.register(RedisBuffer)
def admit_by_redis(buffer: RedisBuffer, name: str, *, milliseconds: int) -> bool:
    """Return whether the caller is admitted. If so, an interval begins. Costs one round trip."""
    command = ("SET", throttle_key(name), "1", "NX", "PX", milliseconds)
    (reply,) = buffer.redis.send([command])
    return reply is not None
