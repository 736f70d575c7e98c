"""Calendar days in the site's time zone, and ranges of them."""

from __future__ import annotations

import datetime

from django.utils import timezone

from django_hitcount.exceptions import InvalidDay

LONGEST_RANGE_DAYS = 3660
"""Days of one range: each is looked up in the buffer."""


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


def list_days(first_day: datetime.date, last_day: datetime.date) -> list[datetime.date]:
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
