"""Where the intervals of throttles are kept: with the hits in Redis, or in the database."""

from __future__ import annotations

from functools import singledispatch

from django_hitcount.buffers.base import Buffer
from django_hitcount.db import admissions
from django_hitcount.db.routing import hits_alias


@singledispatch
def admit(buffer: Buffer, name: str, *, milliseconds: int) -> bool:
    """
    Whether nobody else was admitted under ``name`` within the interval; see Throttle.

    This is the database's way, for every class of buffers that has not registered its own.
    """
    return admissions.admit(f"throttle:{name}", milliseconds * 1000, using=hits_alias())
