"""
The exceptions of django_hitcount::

    HitCountError
    ├── InvalidArgument (ValueError)
    │   ├── UnsavedObject
    │   └── TooFewHits
    ├── BufferUnavailable
    ├── ImportRefused
    └── TransactionLost

An invalid setting raises Django's ``ImproperlyConfigured``.
"""

from __future__ import annotations

__all__ = [
    "BufferUnavailable",
    "HitCountError",
    "ImportRefused",
    "InvalidArgument",
    "TooFewHits",
    "TransactionLost",
    "UnsavedObject",
]


class HitCountError(Exception):
    """Base class of all exceptions of django_hitcount."""


class InvalidArgument(HitCountError, ValueError):
    """An argument of the call is invalid. The message names the value, and what to pass."""


class UnsavedObject(InvalidArgument):
    """
    The object is not saved, so it has no row to count hits for.

    ``{{ article.hits }}`` prints nothing in a template that previews such an object.
    """

    silent_variable_failure = True


class TooFewHits(InvalidArgument):
    """A correction takes back more hits than were counted on that day."""

    def __init__(self, message: str, *, counted: int) -> None:
        super().__init__(message)
        self.counted = counted
        """How many hits of the day can be taken back."""


class BufferUnavailable(HitCountError):
    """Redis is not available."""


class ImportRefused(HitCountError):
    """An import would count hits twice, or another one is not finished. Nothing is written."""


class TransactionLost(HitCountError):
    """
    The database has rolled back the transaction of the view, or the connection is lost.

    What the view wrote is lost. This is the only error of a server that reaches a view.
    """
