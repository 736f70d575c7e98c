"""Which counter a hit belongs to, on which day, and in which partition."""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from django.db import router
from django.db.models import Model
from django.utils import timezone

from django_hitcount import conf
from django_hitcount.content_types import content_type_id
from django_hitcount.exceptions import InvalidAmount, InvalidDay, UnknownCounter
from django_hitcount.objects import counted_model, object_id_of
from django_hitcount.tables import HitSlot

CONTENT_TYPE_IDS = range(1, 2**31)
"""What the primary key of a content type holds."""

AMOUNT_LIMIT = 1_000_000_000
"""Largest amount of one hit: two billion such hits still fit a bigint."""


LONGEST_RANGE_DAYS = 3660
"""Days of one range: each is looked up in the buffer."""


class CounterKey(NamedTuple):
    """
    One counter of one object.

    Sorts in the order in which every writer takes row locks.
    """

    content_type_id: int
    object_id: str
    counter: str

    @property
    def text(self) -> str:
        """The key as a Redis field; object_id last, since it may hold any character."""
        return f"{self.content_type_id}:{self.counter}:{self.object_id}"

    def on(self, day: datetime.date) -> str:
        """The Redis field of this counter on one day."""
        return f"{self.content_type_id}:{self.counter}:{day.isoformat()}:{self.object_id}"

    def partition(self, partitions: int) -> int:
        """The partition of the object: the same for all its counters."""
        return crc32(f"{self.content_type_id}:{self.object_id}".encode()) % partitions


class Interval(NamedTuple):
    """A time within which a limit holds: it is the same for all addresses."""

    name: str
    first_day: datetime.date
    last_day: datetime.date


class AddressMark(NamedTuple):
    """The address of a client within an interval, as a keyed hash of 128 bits."""

    interval: Interval
    hash: bytes


class Marks(NamedTuple):
    """The visitor of one counter, as keyed hashes of 128 bits; see visitors.py."""

    key_id: str
    """Which key ``own`` is under: hashes under different ones cannot be compared."""

    own: bytes | None
    """Under the key of the day of the hit; None if nobody can be told."""

    recent: tuple[bytes, ...] = ()
    """
    For a rule of so many seconds: under the key of now, then under those that a hit may be
    under that forbids this one, if the key rotates meanwhile.
    """

    address: AddressMark | None = None
    """Where the hit came from, if the counter limits that."""


class Hits(NamedTuple):
    """An amount of hits of one counter on one day, and what is known of who made them."""

    key: CounterKey
    day: datetime.date
    amount: int
    refusal: str | None = None
    """Why they do not count, if that is known before they come to the buffer."""

    marks: Marks | None = None
    """Who made them, if the counter asks for that."""


class Refused(NamedTuple):
    """What refused hits are counted by; sorts in lock order."""

    day: datetime.date
    counter: str
    refusal: str

    @property
    def text(self) -> str:
        """The key as a Redis field."""
        return f"{self.day.isoformat()}:{self.counter}:{self.refusal}"


class VisitorsKey(NamedTuple):
    """The visitors of one counter on one day, under one visitor key; sorts in lock order."""

    key: CounterKey
    day: datetime.date
    key_id: str

    @property
    def text(self) -> str:
        """The key as a Redis field; object_id last, since it may hold any character."""
        key = self.key
        return (
            f"{key.content_type_id}:{key.counter}:{self.day.isoformat()}:{self.key_id}:"
            f"{key.object_id}"
        )


def hits_alias() -> str:
    """The database that holds all tables of django_hitcount, read and written."""
    return router.db_for_write(HitSlot)


def counter_key(obj: Model, counter: str) -> CounterKey:
    """
    The key of ``counter`` on ``obj``.

    Costs one query the first time a process meets the model, none after.

    Raises UnknownCounter, UnsavedObject or InvalidKey, naming the value.
    """
    declared_counter(counter)
    object_id = object_id_of(obj)
    return CounterKey(content_type_id_of(obj), object_id, counter)


def declared_counter(counter: str) -> str:
    """``counter`` itself; raises UnknownCounter if HITCOUNT does not declare it."""
    if counter not in conf.get_config().counters:
        raise UnknownCounter(
            f"Unknown counter {counter!r}. Declare it in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{str(counter)!r}: {{}}}}}}.'
        )
    return counter


def content_type_id_of(obj: Model | type[Model]) -> int:
    """
    The content type id of the model that ``obj`` counts as, see counted_model().

    Costs one query the first time a process meets the model, none after.
    """
    # Not type(obj): request.user is a lazy object, which only looks like its model.
    return content_type_id(counted_model(obj._meta.model), using=hits_alias())


def valid_amount(amount: int) -> int:
    """``amount`` itself if it may be recorded; raises InvalidAmount if not."""
    if type(amount) is not int or amount == 0 or abs(amount) > AMOUNT_LIMIT:
        raise InvalidAmount(
            f"Cannot record an amount of {amount!r}: pass a whole number other than 0, "
            f"from -{AMOUNT_LIMIT} to {AMOUNT_LIMIT}."
        )
    return amount


def day_of(at: datetime.date | datetime.datetime | None = None) -> datetime.date:
    """
    The calendar day of ``at`` (now, if None) in the site's TIME_ZONE.

    The zone that a request has activated plays no part: a day has one meaning for all.
    """
    zone = timezone.get_default_timezone()
    if at is None:
        return datetime.datetime.now(tz=zone).date()
    if isinstance(at, datetime.datetime):
        return _local_day(at, zone)
    if isinstance(at, datetime.date):
        return at
    raise InvalidDay(f"{at!r} is no day: pass a date or a datetime.")


def _local_day(at: datetime.datetime, zone: datetime.tzinfo) -> datetime.date:
    try:
        return (at if timezone.is_naive(at) else at.astimezone(zone)).date()
    except OverflowError as exc:
        raise InvalidDay(f"{at!r} is on no day in {zone}: pass an earlier moment.") from exc


def open_days() -> tuple[datetime.date, datetime.date]:
    """Yesterday, as a hit that came before midnight may be written after it, and today."""
    return last_days(2)


def valid_days(first_day: datetime.date, last_day: datetime.date) -> list[datetime.date]:
    """The days of a range; raises InvalidDay if it is none."""
    for day in (first_day, last_day):
        if type(day) is not datetime.date:
            raise InvalidDay(f"{day!r} is no day: pass a date.")
    count = (last_day - first_day).days + 1
    if not 1 <= count <= LONGEST_RANGE_DAYS:
        raise InvalidDay(
            f"{first_day} to {last_day} is no range of 1 to {LONGEST_RANGE_DAYS} days: "
            "pass the earlier day first."
        )
    return [first_day + datetime.timedelta(days=day) for day in range(count)]


def last_days(days: int) -> tuple[datetime.date, datetime.date]:
    """The first and the last of so many days, of which today is the last."""
    if type(days) is not int or not 1 <= days <= LONGEST_RANGE_DAYS:
        raise InvalidDay(
            f"{days!r} is no number of days: pass a whole number from 1 to {LONGEST_RANGE_DAYS}."
        )
    today = day_of()
    return today - datetime.timedelta(days=days - 1), today


def parse_key(field: str) -> CounterKey:
    """Read back CounterKey.text; raises ValueError if ``field`` is no such text."""
    content_type_id, counter, object_id = field.split(":", 2)
    return CounterKey(_content_type_id(content_type_id), _object_id(object_id), _counter(counter))


def parse_daily(field: str) -> tuple[CounterKey, datetime.date]:
    """Read back CounterKey.on(); raises ValueError if ``field`` is no such text."""
    content_type_id, counter, day, object_id = field.split(":", 3)
    key = CounterKey(_content_type_id(content_type_id), _object_id(object_id), _counter(counter))
    return key, _day(day)


def parse_refused(field: str) -> Refused:
    """Read back Refused.text; raises ValueError if ``field`` is no such text."""
    day, counter, refusal = field.split(":")
    return Refused(_day(day), _counter(counter), _counter(refusal))


def parse_visitors(field: str) -> VisitorsKey:
    """Read back VisitorsKey.text; raises ValueError if ``field`` is no such text."""
    content_type_id, counter, day, key_id, object_id = field.split(":", 4)
    key = CounterKey(_content_type_id(content_type_id), _object_id(object_id), _counter(counter))
    return VisitorsKey(key, _day(day), _key_id(key_id))


# A batch has many objects of few models, counters and days: those few are parsed once. Each
# has one spelling only, as another one would be another field with the same key.


@lru_cache(maxsize=1024)
def _content_type_id(text: str) -> int:
    number = int(text)
    if str(number) != text or number not in CONTENT_TYPE_IDS:
        raise ValueError(f"{text!r} is no content type id")
    return number


@lru_cache(maxsize=1024)
def _counter(text: str) -> str:
    if not conf.is_counter_name(text):
        raise ValueError(f"{text!r} is no counter name")
    return text


@lru_cache(maxsize=1024)
def _day(text: str) -> datetime.date:
    day = datetime.date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(f"{text!r} is {day} in another spelling")
    return day


def _key_id(text: str) -> str:
    if not 0 < len(text) <= conf.VISITOR_KEY_MAX_LENGTH or "\0" in text:
        raise ValueError(f"{text[:50]!r} is no id of a visitor key")
    return text


def _object_id(text: str) -> str:
    if len(text) > conf.OBJECT_ID_MAX_LENGTH or "\0" in text:
        raise ValueError(f"object_id {text[:40]!r} does not fit its column")
    return text
