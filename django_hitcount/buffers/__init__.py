"""
Buffers: where hits wait before they reach the tables. HITCOUNT["BUFFER"] names the class.

To write your own buffer, import Buffer from here, and the values that its methods take and return.
"""

from __future__ import annotations

from django_hitcount import conf
from django_hitcount.buffers.base import Buffer
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.counters.batches import (
    Batch,
    BatchId,
    BufferState,
    CounterDay,
    FlushPosition,
    HeldHits,
    RecordResult,
    Waiting,
)
from django_hitcount.counters.hits import NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey, CounterRange, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.page_numbers import BufferNumbers, UnkeptRange, Wanted
from django_hitcount.counters.visitors import DayInTable, MergedDays, Sketch, Visitors

__all__ = [
    "Batch",
    "BatchId",
    "Buffer",
    "BufferNumbers",
    "BufferState",
    "CounterDay",
    "CounterKey",
    "CounterRange",
    "DailyVisitorsKey",
    "DayInTable",
    "FlushPosition",
    "HeldHits",
    "MergedDays",
    "NewHits",
    "RecordResult",
    "RefusedKey",
    "Sketch",
    "UnkeptRange",
    "VisitorHashes",
    "Visitors",
    "Waiting",
    "Wanted",
    "get_buffer",
]

INSTALL_EXTRA = 'Install the extra: pip install "django-buffered-hitcount[redis]".'

NAME_A_BUFFER = (
    "Use 'django_hitcount.buffers.database.DatabaseBuffer', "
    "'django_hitcount.buffers.redis.RedisBuffer', or the path of your own subclass of Buffer."
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
            f"Invalid value for HITCOUNT['BUFFER']: {path!r} is not a subclass of "
            "django_hitcount.buffers.Buffer.",
            NAME_A_BUFFER,
        )
    return cls()
