"""Buffers: where hits wait before they reach the tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django_hitcount import conf
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.conf import cached_for_settings
from django_hitcount.exceptions import BufferUnavailable

__all__ = ["Buffer", "ask_buffer_or_database", "get_buffer"]

T = TypeVar("T")


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


def ask_buffer_or_database(ask: Callable[[Buffer], T]) -> T | None:
    """
    Ask the buffer, and while Redis is away the database, which knows nothing of what Redis knows.

    Returns None if the breakers of both are open. Raises a database error.
    """
    for buffer in (get_buffer(), DatabaseBuffer()):
        with suppress(BufferUnavailable):
            return ask(buffer)
    return None
