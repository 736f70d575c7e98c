"""The keys that hits, refused hits and visitors are counted by, and their text in Redis."""

from __future__ import annotations

import datetime
import reprlib
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from django_hitcount import conf
from django_hitcount.exceptions import InvalidArgument

CONTENT_TYPE_IDS = range(1, 2**31)
"""The range of primary keys of content types."""


class InvalidKey(InvalidArgument):
    """Hits cannot be counted for the primary key of the object."""


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


def check_counter(counter: str) -> str:
    """Return ``counter``; raise InvalidArgument if it is no str or HITCOUNT does not declare it."""
    # Not isinstance(): a lazy text would pass, and no driver of a database takes it.
    if not issubclass(type(counter), str):
        raise InvalidArgument(
            f"Invalid counter: {counter!r} has the type {type(counter).__name__}. "
            "Pass its name as a str."
        )
    if counter not in conf.get_config().counters:
        raise InvalidArgument(
            f"Unknown counter {counter!r}. Declare it in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{str(counter)!r}: {{}}}}}}.'
        )
    return counter


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


def parse_daily(field: str) -> tuple[CounterKey, datetime.date]:
    """Read back CounterKey.on(); raises ValueError if ``field`` is invalid."""
    _, content_type_id, counter, day, object_id = field.split(":", 4)
    return _counter_key(content_type_id, object_id, counter), _day(day)


def parse_refused(field: str) -> RefusedKey:
    """Read back RefusedKey.field; raises ValueError if ``field`` is invalid."""
    _, day, counter, refusal = field.split(":")
    return RefusedKey(_day(day), _counter(counter), _counter(refusal))


def parse_visitors(field: str) -> DailyVisitorsKey:
    """Read back DailyVisitorsKey.field; raises ValueError if ``field`` is invalid."""
    _, content_type_id, counter, day, key_id, object_id = field.split(":", 5)
    key = _counter_key(content_type_id, object_id, counter)
    if not is_text(key_id, conf.VISITOR_KEY_MAX_LENGTH):
        raise ValueError(f"invalid visitor key: {key_id[:40]!r}")
    return DailyVisitorsKey(key, _day(day), key_id)


def _counter_key(content_type_id: str, object_id: str, counter: str) -> CounterKey:
    if len(object_id) > conf.OBJECT_ID_MAX_LENGTH or "\0" in object_id:
        raise ValueError(f"does not fit its column: {object_id[:40]!r}")
    return CounterKey(_content_type_id(content_type_id), object_id, _counter(counter))


@lru_cache(maxsize=1024)
def _content_type_id(text: str) -> int:
    number = int(text)
    if str(number) != text or number not in CONTENT_TYPE_IDS:
        raise ValueError(f"invalid content type id: {text!r}")
    return number


@lru_cache(maxsize=1024)
def _counter(text: str) -> str:
    if not conf.is_counter_name(text):
        raise ValueError(f"invalid counter name: {text!r}")
    return text


@lru_cache(maxsize=1024)
def _day(text: str) -> datetime.date:
    day = datetime.date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(f"invalid day: {text!r} instead of {day}")
    return day


def is_storable(text: str) -> bool:
    """Return whether every database takes a text: it has no NUL and no half surrogate pair."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def is_text(value: object, longest: int) -> bool:
    """Return whether a value is a text for a column: not empty, not too long, and storable."""
    # Not isinstance(): a lazy text would pass, and neither Redis nor a database takes it.
    if not issubclass(type(value), str):
        return False
    text = str(value)
    return 0 < len(text) <= longest and is_storable(text)


def check_text(text: str, longest: int, what: str) -> str:
    """Return a text that can be stored. Raises InvalidArgument for anything else."""
    if not is_text(text, longest):
        raise InvalidArgument(
            f"Invalid {what}: {reprlib.repr(text)}. Pass a text of 1 to {longest} characters, "
            "without NUL and half surrogate pairs."
        )
    return text


def valid_visitor_counter(counter: str) -> str:
    """Return ``counter``; raise InvalidArgument if it counts no visitors."""
    if not conf.get_config().counters[check_counter(counter)].visitors:
        raise InvalidArgument(
            f"The counter {counter!r} does not count visitors. Turn that on in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{counter!r}: {{"visitors": True}}}}}}.'
        )
    return counter
