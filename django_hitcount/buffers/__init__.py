"""Buffers: where hits wait before they reach the tables. HITCOUNT["BUFFER"] names the class."""

from __future__ import annotations

from django_hitcount import conf
from django_hitcount.buffers.base import Buffer
from django_hitcount.conf.caches import cached_for_settings

__all__ = ["Buffer", "get_buffer"]

INSTALL_EXTRA = 'Install the extra: pip install "django-buffered-hitcount[redis]".'

NAME_A_BUFFER = (
    "Use 'django_hitcount.buffers.database.DatabaseBuffer' or "
    "'django_hitcount.buffers.redis.RedisBuffer'."
)


@cached_for_settings("HITCOUNT", "CACHES")
def get_buffer() -> Buffer:
    """
    Return the buffer of this process. Creates it at first use and when a setting has changed.

    Raises ImproperlyConfigured if HITCOUNT["BUFFER"] does not name a buffer.
    """
    path = conf.get_config().buffer
    try:
        cls = conf.import_dotted_path(path)
    except ImportError as exc:
        raise conf.SettingError(
            "BUFFER",
            f"Invalid value for HITCOUNT['BUFFER']: {path!r} cannot be imported ({exc}).",
            INSTALL_EXTRA if exc.name in {"django_redis", "redis", "hiredis"} else NAME_A_BUFFER,
        ) from exc
    if not (isinstance(cls, type) and issubclass(cls, Buffer)):
        raise conf.SettingError(
            "BUFFER",
            f"Invalid value for HITCOUNT['BUFFER']: {path!r} is not a buffer.",
            NAME_A_BUFFER,
        )
    return cls()
