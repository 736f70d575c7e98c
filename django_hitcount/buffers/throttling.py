"""Where the intervals of throttles are kept: in the Redis of the buffer, or in the database."""

from __future__ import annotations

from functools import singledispatch

from django_hitcount.buffers.base import Buffer
from django_hitcount.db import admissions
from django_hitcount.db.routing import hits_alias


@singledispatch
def admit(buffer: Buffer, name: str, *, milliseconds: int) -> bool:
    """
    Return whether the caller is admitted under ``name``, see Throttle. If so, an interval begins.

    This function keeps intervals in the database. A class of buffers may register another one.
    """
    return admissions.admit(f"throttle:{name}", milliseconds * 1000, using=hits_alias())
