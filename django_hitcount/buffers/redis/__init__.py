"""The buffer in Redis: hits wait there, and totals are read from there. Needs the extra "redis"."""

from __future__ import annotations

from django_hitcount.buffers.redis.buffer import RedisBuffer
from django_hitcount.buffers.redis.throttling import admit_by_redis

__all__ = ["RedisBuffer", "admit_by_redis"]
