"""The buffer in Redis."""

from __future__ import annotations

from django_hitcount.buffers.redis.buffer import RedisBuffer

__all__ = ["RedisBuffer"]
