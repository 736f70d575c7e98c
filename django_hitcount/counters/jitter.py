"""
Add a random time to time limits, so that nobody can see which of them began together.

Two limits that end in the same millisecond would show that the same request began both.
"""

from __future__ import annotations

import os
import struct

SHARE = 10
"""A time limit becomes longer by up to this share of it: enough to hide when it began."""

LONGEST_MILLISECONDS = 600_000
"""It does not become longer by more than this: enough to hide among many others."""

DRAWS_AT_A_TIME = 256
"""Random numbers read at a time: a call to the system takes as long for one as for many."""

_draws: list[int] = []


def lengthen(milliseconds: int) -> int:
    """
    Lengthen a time limit by a random part of longest_addition(); 0 stays 0.

    The random numbers come from the system, so they cannot be predicted.
    """
    if not milliseconds:
        return 0
    try:
        draw = _draws.pop()
    except IndexError:
        draw = _draw_more()
    return milliseconds + (draw * (longest_addition(milliseconds) + 1) >> 32)


def longest_addition(milliseconds: int) -> int:
    """Return the longest time that lengthen() adds to a time limit."""
    return min(milliseconds // SHARE, LONGEST_MILLISECONDS)


def _draw_more() -> int:
    """Return 32 random bits, and keep more of them."""
    draw, *others = struct.unpack(f"{DRAWS_AT_A_TIME}I", os.urandom(4 * DRAWS_AT_A_TIME))
    _draws.extend(others)
    return int(draw)


os.register_at_fork(after_in_child=_draws.clear)
