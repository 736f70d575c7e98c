"""
What django_hitcount raises, as a tree::

    HitCountError
    ├── InvalidHit (ValueError)
    │   ├── UnknownCounter
    │   ├── UnsavedObject
    │   ├── InvalidKey
    │   ├── InvalidAmount
    │   ├── InvalidDay
    │   └── VisitorsNotCounted
    ├── InvalidThrottle (ValueError)
    ├── BufferUnavailable
    │   └── AnswerLost
    ├── TotalsMoving
    └── TransactionLost

A wrong setting raises Django's own ``ImproperlyConfigured``.
"""

from __future__ import annotations


class HitCountError(Exception):
    """Base of all that django_hitcount raises."""


class InvalidHit(HitCountError, ValueError):
    """A caller asked to count something that cannot be counted."""


class UnknownCounter(InvalidHit):
    """The counter is not declared in HITCOUNT["COUNTERS"]."""


class UnsavedObject(InvalidHit):
    """
    The object has no row yet, so there is nothing to count hits for.

    A template that shows ``{{ article.hits }}`` in a preview prints nothing.
    """

    silent_variable_failure = True


class InvalidKey(InvalidHit):
    """The object's primary key does not fit the object_id column."""


class InvalidAmount(InvalidHit):
    """The amount is not a whole number other than 0 within the bounds."""


class InvalidDay(InvalidHit):
    """The day is neither a date nor a datetime."""


class InvalidThrottle(HitCountError, ValueError):
    """The name or the interval of a throttle is invalid."""


class VisitorsNotCounted(InvalidHit):
    """The counter is not set to count visitors."""


class BufferUnavailable(HitCountError):
    """Redis did not take the command, and certainly did not run it."""


class AnswerLost(BufferUnavailable):
    """The command was sent but not answered: Redis may have run it or not."""


class TotalsMoving(HitCountError):
    """No quiet instant between two flushes was found to read a total in."""


class TransactionLost(HitCountError):
    """
    The database has undone the transaction of the view, or the connection is gone.

    What the view wrote is not there any more, so this alone is not kept from it.
    """
