"""Read keys back from their text in Redis."""

from __future__ import annotations

import datetime
from functools import lru_cache

from django_hitcount import conf
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey

CONTENT_TYPE_IDS = range(1, 2**31)
"""The range of primary keys of content types."""


def parse_daily(field: str) -> tuple[CounterKey, datetime.date]:
    """Read back CounterKey.on(); raises ValueError if ``field`` is invalid."""
    _, content_type_id, counter, day, object_id = field.split(":", 4)
    key = CounterKey(_content_type_id(content_type_id), _object_id(object_id), _counter(counter))
    return key, _day(day)


def parse_refused(field: str) -> RefusedKey:
    """Read back RefusedKey.field; raises ValueError if ``field`` is invalid."""
    _, day, counter, refusal = field.split(":")
    return RefusedKey(_day(day), _counter(counter), _counter(refusal))


def parse_visitors(field: str) -> DailyVisitorsKey:
    """Read back DailyVisitorsKey.field; raises ValueError if ``field`` is invalid."""
    _, content_type_id, counter, day, key_id, object_id = field.split(":", 5)
    key = CounterKey(_content_type_id(content_type_id), _object_id(object_id), _counter(counter))
    return DailyVisitorsKey(key, _day(day), _key_id(key_id))


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


def _key_id(text: str) -> str:
    if not 0 < len(text) <= conf.VISITOR_KEY_MAX_LENGTH or "\0" in text:
        raise ValueError(f"invalid id of a visitor key: {text[:50]!r}")
    return text


def _object_id(text: str) -> str:
    if len(text) > conf.OBJECT_ID_MAX_LENGTH or "\0" in text:
        raise ValueError(f"object_id does not fit its column: {text[:40]!r}")
    return text
