"""At most once per interval, over all processes and machines."""

from __future__ import annotations

from decimal import Decimal
from math import ceil

from asgiref.sync import sync_to_async

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.exceptions import InvalidThrottle

SHORTEST_SECONDS = 0.001
LONGEST_SECONDS = 366 * 24 * 3600


class Throttle:
    """
    Admits one caller per interval, whoever asks and wherever::

        if Throttle("newsletter", 60).admit():
            send_newsletter()

    An interval begins with an admission, and nobody else is admitted before it is over. So
    two admissions are never closer than the interval; the slots of a calendar (one per
    minute of the clock, say) would admit one at 0:59 and the next at 1:00.

    Names are compared byte for byte. Under one name, the interval that counts is the one
    of the throttle that was admitted last, and Redis and the database do not know of each
    other's admissions.

    The clock is that of the server. One that is set ahead ends intervals early; one that is
    set back costs the database one interval more, and Redis as much as it was set back.

    Redis may also forget an interval: by an eviction policy that drops keys with a time
    limit, or when a replica takes over that has not got the key.

    Raises InvalidThrottle if the arguments make no sense.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = _valid_name(name)
        self.seconds = _valid_seconds(seconds)
        # As it is written: 2.007 * 1000 would be a little more than 2007.
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
        return get_buffer().admit(self.name, self._milliseconds)

    async def aadmit(self) -> bool:
        """See admit()."""
        return await sync_to_async(self.admit)()


def _valid_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= conf.THROTTLE_NAME_MAX_LENGTH:
        raise InvalidThrottle(
            f"The name of a throttle is {_shortened(name)}: pass a text of 1 to "
            f"{conf.THROTTLE_NAME_MAX_LENGTH} characters."
        )
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidThrottle(
            f"The name of a throttle is {name!r}, which holds a character that cannot be "
            "stored (NUL or half a surrogate pair): remove it."
        )
    return name


def _valid_seconds(seconds: object) -> float:
    if (
        not isinstance(seconds, int | float)
        or seconds is True
        or not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS
    ):
        raise InvalidThrottle(
            f"The interval of a throttle is {_shortened(seconds)}: pass a number of seconds "
            f"from {SHORTEST_SECONDS} to {LONGEST_SECONDS} (366 days)."
        )
    return seconds


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
