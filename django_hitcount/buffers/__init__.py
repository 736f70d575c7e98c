"""Where hits wait before they reach the tables; the class is named by HITCOUNT["BUFFER"]."""

from __future__ import annotations

from functools import cache

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_hitcount import conf
from django_hitcount.buffers.base import Buffer

__all__ = ["Buffer", "get_buffer"]


@cache
def get_buffer() -> Buffer:
    """
    The buffer of this process, made at first use and anew when a setting changes.

    Raises ImproperlyConfigured if HITCOUNT["BUFFER"] does not name a buffer.
    """
    path = conf.get_config().buffer
    try:
        cls = import_string(path)
    except ImportError as exc:
        raise ImproperlyConfigured(
            f"HITCOUNT['BUFFER'] is {path!r}, which cannot be imported ({exc}). Name "
            "'django_hitcount.buffers.database.DatabaseBuffer', "
            "'django_hitcount.buffers.redis.RedisBuffer' or a class of your own."
        ) from exc
    if not (isinstance(cls, type) and issubclass(cls, Buffer)):
        raise ImproperlyConfigured(
            f"HITCOUNT['BUFFER'] is {path!r}, which is not a subclass of "
            "django_hitcount.buffers.Buffer. Name one that is."
        )
    return cls()


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in {"HITCOUNT", "CACHES"}:
        get_buffer.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_hitcount.buffers")
