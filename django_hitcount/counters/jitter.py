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

DRAWS_AT_A_TIME = 256
"""Asking the system for one takes as long as for many."""

_draws: list[int] = []


def lengthen(milliseconds: int) -> int:
    """
    A time limit that is longer by a random part of longest_addition(); 0 stays 0.

    From the system's source of randomness: nobody can work it out.
    """
    return (
        milliseconds + (_draw() * (longest_addition(milliseconds) + 1) >> 32) if milliseconds else 0
    )


def longest_addition(milliseconds: int) -> int:
    """What lengthen() adds to a time limit at most."""
    return min(milliseconds // SHARE, LONGEST_MILLISECONDS)


def _draw() -> int:
    """32 random bits."""
    while True:
        try:
            return _draws.pop()
        except IndexError:  # Other threads may be faster than this one.
            _draws.extend(struct.unpack(f"{DRAWS_AT_A_TIME}I", os.urandom(4 * DRAWS_AT_A_TIME)))


os.register_at_fork(after_in_child=_draws.clear)
