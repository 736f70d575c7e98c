"""The buffer in Redis: hits wait there, and totals are read from there. Needs the extra "redis"."""

from __future__ import annotations

from django_hitcount.buffers.redis.buffer import RedisBuffer

__all__ = ["RedisBuffer"]
