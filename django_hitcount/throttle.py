"""Do something at most once per interval, over all processes and machines."""

from __future__ import annotations

import reprlib
from decimal import Decimal
from math import ceil

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.keys import check_text
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.twins import async_method

__all__ = ["Throttle"]

SHORTEST_SECONDS = 0.001
"""One millisecond: Redis and SQLite cannot measure shorter times."""

LONGEST_SECONDS = 366 * 24 * 3600


class Throttle:
    """
    Admits one caller per interval, over all processes and machines::

        if Throttle("newsletter", 60).admit():
            send_newsletter()

    When a caller is admitted, an interval begins. Nobody else is admitted before it ends, so there
    is at least one interval between two admissions. (If it admitted one caller per minute of the
    clock, one might come at 0:59 and the next at 1:00.)

    Args:
        name: a text of up to 150 characters, compared byte by byte. All throttles with the same
            name share the interval. Its length is that of the throttle that was last admitted.
        seconds: the length of the interval, from 0.001 to 366 days.

    Redis and the database do not share admissions.

    Uses the clock of the server. If it is set forward, the interval ends early. If it is set back,
    the interval ends later: with Redis, by the time that the clock was set back, and with the
    database, by one interval.

    Redis may lose an interval, if an eviction policy drops keys with a time limit, or if a replica
    takes over that does not have the key.

    Raises InvalidArgument if an argument is invalid.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = check_text(name, conf.THROTTLE_NAME_MAX_LENGTH, "name of a throttle")
        self.seconds = _valid_seconds(seconds)
        # As a float, 2.007 * 1000 is a little more than 2007. As a Decimal, it is exact.
        self._milliseconds = ceil(Decimal(str(self.seconds)) * 1000)

    def __repr__(self) -> str:
        return f"Throttle({self.name!r}, {self.seconds!r})"

    def admit(self) -> bool:
        """
        Return whether the caller is admitted. If so, the next interval begins now.

        With Redis, costs one round trip. A rollback does not undo an admission.

        Without Redis, costs one query if the caller is not admitted, and otherwise two, or three on
        MySQL and for a new name. Within a transaction, costs two statements more, and the admission
        is part of it: a rollback undoes it.

        Raises BufferUnavailable if Redis does not answer, and DatabaseError if the database does
        not. Then the caller is not admitted, but an interval may have begun.
        """
        return get_buffer().admit(self.name, milliseconds=self._milliseconds)

    aadmit = async_method(admit)


def _valid_seconds(seconds: object) -> float:
    if (
        not isinstance(seconds, int | float)
        or seconds is True
        or not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS
    ):
        raise InvalidArgument(
            f"Invalid interval of a throttle: {reprlib.repr(seconds)}. Pass a number of seconds "
            f"from {SHORTEST_SECONDS} to {LONGEST_SECONDS} (366 days)."
        )
    return seconds
