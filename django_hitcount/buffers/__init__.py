"""Buffers: where hits wait before they reach the tables."""

from __future__ import annotations

from django_hitcount import conf
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.conf import cached_for_settings

__all__ = ["Buffer", "get_buffer"]


@cached_for_settings("HITCOUNT", "CACHES")
def get_buffer() -> Buffer:
    """
    Return the buffer of this process. Creates it at first use and when a setting has changed.

    Raises ImproperlyConfigured if HITCOUNT["REDIS"] is set and a library for it is missing.
    """
    alias = conf.get_config().redis
    if alias is None:
        return DatabaseBuffer()
    try:
        from django_hitcount.buffers.redis import RedisBuffer
    except ImportError as exc:
        raise conf.SettingError(
            "REDIS",
            f"HITCOUNT['REDIS'] is {alias!r}, but {exc.name} is not installed.",
            'Install the extra: pip install "django-buffered-hitcount[redis]".',
        ) from exc
    return RedisBuffer(alias)
