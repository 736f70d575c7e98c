"""
The exceptions of django_hitcount::

    HitCountError
    ├── InvalidHit (ValueError)
    │   ├── UnknownCounter
    │   ├── UnsavedObject
    │   ├── InvalidKey
    │   ├── InvalidAmount
    │   │   └── TooFewHits
    │   ├── InvalidDay
    │   ├── InvalidCorrection
    │   └── VisitorsNotCounted
    ├── InvalidRanking (ValueError)
    ├── InvalidThrottle (ValueError)
    ├── BufferUnavailable
    │   └── AnswerLost
    └── TransactionLost

An invalid setting raises Django's ``ImproperlyConfigured``.
"""

from __future__ import annotations

__all__ = [
    "AnswerLost",
    "BufferUnavailable",
    "HitCountError",
    "InvalidAmount",
    "InvalidCorrection",
    "InvalidDay",
    "InvalidHit",
    "InvalidKey",
    "InvalidRanking",
    "InvalidThrottle",
    "TooFewHits",
    "TransactionLost",
    "UnknownCounter",
    "UnsavedObject",
    "VisitorsNotCounted",
]


class HitCountError(Exception):
    """Base class of all exceptions of django_hitcount."""


class InvalidHit(HitCountError, ValueError):
    """An argument of the call is invalid."""


class UnknownCounter(InvalidHit):
    """The counter is not declared in HITCOUNT["COUNTERS"], or is no str."""


class UnsavedObject(InvalidHit):
    """
    The object is not saved, so it has no row to count hits for.

    ``{{ article.hits }}`` prints nothing in a template that previews such an object.
    """

    silent_variable_failure = True


class InvalidKey(InvalidHit):
    """Hits cannot be counted for the primary key of the object."""


class InvalidAmount(InvalidHit):
    """The amount is 0, too large, or not a whole number."""


class TooFewHits(InvalidAmount):
    """A correction takes back more hits than were counted on that day."""

    def __init__(self, message: str, *, counted: int) -> None:
        super().__init__(message)
        self.counted = counted
        """How many hits of the day can be taken back."""


class InvalidDay(InvalidHit):
    """The day is not a date or datetime, or the range of days is invalid."""


class InvalidCorrection(InvalidHit):
    """The correction has no valid reason, or its user has no name."""


class InvalidRanking(HitCountError, ValueError):
    """The source, the limit, the period or the half-life of a ranking is invalid."""


class InvalidThrottle(HitCountError, ValueError):
    """The name or the interval of a throttle is invalid."""


class VisitorsNotCounted(InvalidHit):
    """The counter does not count visitors."""


class BufferUnavailable(HitCountError):
    """Redis is not available, and has certainly not run the command. See also AnswerLost."""


class AnswerLost(BufferUnavailable):
    """Redis did not answer after the command was sent, so it may have run it."""


class TransactionLost(HitCountError):
    """
    The database has rolled back the transaction of the view, or the connection is lost.

    What the view wrote is lost. This is the only error of a server that reaches a view.
    """
