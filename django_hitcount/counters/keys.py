"""The keys that hits, refused hits and visitors are counted by."""

from __future__ import annotations

import datetime
from typing import NamedTuple
from zlib import crc32


class CounterKey(NamedTuple):
    """
    One counter of one object.

    Keys sort in the order in which every writer takes row locks.
    """

    content_type_id: int
    object_id: str
    counter: str

    @property
    def text(self) -> str:
        """The key as a part of Redis keys; object_id last, since it may hold any character."""
        return f"{self.content_type_id}:{self.counter}:{self.object_id}"

    def on(self, day: datetime.date) -> str:
        """Return the Redis field of this counter on one day."""
        return f"d:{self.content_type_id}:{self.counter}:{day.isoformat()}:{self.object_id}"

    def model_on(self, day: datetime.date) -> str:
        """Return the Redis field of all objects of the model on one day."""
        return f"m:{self.content_type_id}:{self.counter}:{day.isoformat()}"

    def partition(self, partitions: int) -> int:
        """Return the partition of the object: the same for all its counters."""
        return crc32(f"{self.content_type_id}:{self.object_id}".encode()) % partitions


class CounterRange(NamedTuple):
    """A counter, and the first and the last of some days."""

    key: CounterKey
    first_day: datetime.date
    last_day: datetime.date

    @property
    def text(self) -> str:
        """The counter's name and the days, as the scripts take them."""
        return f"{self.key.counter}:{self.first_day.isoformat()}:{self.last_day.isoformat()}"

    @property
    def open_days(self) -> CounterRange:
        """The open days of a range that ends today."""
        yesterday = self.last_day - datetime.timedelta(days=1)
        return self._replace(first_day=max(self.first_day, yesterday))


ObjectKey = tuple[int, str]
"""An object: its content type id and its object id."""


class RefusedKey(NamedTuple):
    """The day, counter and reason of refused hits. Keys sort in the order of row locks."""

    day: datetime.date
    counter: str
    refusal: str

    @property
    def field(self) -> str:
        """The key as a Redis field."""
        return f"r:{self.day.isoformat()}:{self.counter}:{self.refusal}"


class DailyVisitorsKey(NamedTuple):
    """
    The visitors of one counter on one day, hashed under one visitor key.

    Keys sort in the order of row locks.
    """

    key: CounterKey
    day: datetime.date
    key_id: str

    @property
    def text(self) -> str:
        """The key as a part of Redis keys; object_id last, since it may hold any character."""
        key = self.key
        return (
            f"{key.content_type_id}:{key.counter}:{self.day.isoformat()}:{self.key_id}:"
            f"{key.object_id}"
        )

    @property
    def field(self) -> str:
        """The key as a Redis field."""
        return f"v:{self.text}"
