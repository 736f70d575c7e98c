"""Do something at most once per interval, over all processes and machines."""

from __future__ import annotations

from decimal import Decimal
from math import ceil

from asgiref.sync import sync_to_async

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.throttling import admit
from django_hitcount.exceptions import InvalidThrottle

SHORTEST_SECONDS = 0.001
"""One millisecond: Redis and SQLite measure no shorter time."""

LONGEST_SECONDS = 366 * 24 * 3600


class Throttle:
    """
    Admits one caller per interval, over all processes and machines::

        if Throttle("newsletter", 60).admit():
            send_newsletter()

    An interval begins when a caller is admitted, and nobody else is admitted before it ends. So
    two admissions are never closer than the interval. (One admission per minute of the clock
    would allow one at 0:59 and the next at 1:00.)

    Args:
        name: a text of up to 150 characters, compared byte for byte. All throttles with one
            name share the interval; it is as long as the throttle that was last admitted says.
        seconds: the length of the interval, from 0.001 to 366 days.

    Redis and the database do not share admissions.

    The server's clock decides. If it is set forward, the interval ends early. If it is set back,
    the database adds one interval, and Redis adds the time that the clock was set back by.

    Redis may lose an interval: if an eviction policy drops keys with a time limit, or if a
    replica takes over that does not have the key.

    Raises InvalidThrottle if an argument is invalid.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = _valid_name(name)
        self.seconds = _valid_seconds(seconds)
        # Exactly what was written: as a float, 2.007 * 1000 is a little more than 2007.
        self._milliseconds = ceil(Decimal(str(self.seconds)) * 1000)

    def __repr__(self) -> str:
        return f"Throttle({self.name!r}, {self.seconds!r})"

    def admit(self) -> bool:
        """
        Whether the caller is admitted; the next interval begins now if so.

        With Redis, costs one round trip; a rollback does not give an admission back.

        Without, costs one query if refused, two if admitted, three on MySQL and under a new
        name. Within a transaction the admission is part of it: a rollback gives it back.

        Raises BufferUnavailable if Redis, or DatabaseError if the database does not answer:
        nobody is admitted then, although an interval may have begun.
        """
        return admit(get_buffer(), self.name, milliseconds=self._milliseconds)

    async def aadmit(self) -> bool:
        """See admit()."""
        return await sync_to_async(self.admit)()


def _valid_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= conf.THROTTLE_NAME_MAX_LENGTH:
        raise InvalidThrottle(
            f"Invalid name of a throttle: {_shorten(name)}. Pass a text of 1 to "
            f"{conf.THROTTLE_NAME_MAX_LENGTH} characters."
        )
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidThrottle(
            f"Invalid name of a throttle: {name!r}. Remove the character that cannot be stored "
            "(NUL or half a surrogate pair)."
        )
    return name


def _valid_seconds(seconds: object) -> float:
    if (
        not isinstance(seconds, int | float)
        or seconds is True
        or not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS
    ):
        raise InvalidThrottle(
            f"Invalid interval of a throttle: {_shorten(seconds)}. Pass a number of seconds "
            f"from {SHORTEST_SECONDS} to {LONGEST_SECONDS} (366 days)."
        )
    return seconds


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
