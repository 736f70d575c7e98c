"""
Time limits that do not tell which of them began together.

Whoever sees two of them end at the same millisecond knows that one request made both.
"""

from __future__ import annotations

import os
import struct

SHARE = 10
"""A time limit is longer by up to one part in so many."""

LONGEST_MILLISECONDS = 600_000
"""But by no more than this: enough to be one among many, and nobody's day is shifted by it."""


def lengthened(milliseconds: int, *, count: int) -> list[int]:
    """
    So many time limits, each longer than ``milliseconds`` by a random part of most_added().

    From the system's source of randomness: nobody can work them out.
    """
    spread = most_added(milliseconds) + 1
    draws = struct.unpack(f"{count}I", os.urandom(4 * count))
    return [milliseconds + (draw * spread >> 32) for draw in draws]


def most_added(milliseconds: int) -> int:
    """What lengthened() adds to a time limit at most."""
    return min(milliseconds // SHARE, LONGEST_MILLISECONDS)
