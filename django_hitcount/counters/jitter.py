"""
Add a random time to time limits, so that nobody can see which of them began together.

Two limits that end in the same millisecond would show that the same request began both.
"""

from __future__ import annotations

import os

SHARE = 10
"""A time limit becomes longer by up to this share of it: enough to hide when it began."""

LONGEST_MILLISECONDS = 600_000
"""It does not become longer by more than this: enough to hide among many others."""


def lengthen(milliseconds: int) -> int:
    """
    Lengthen a time limit by a random part of it; 0 stays 0.

    The random numbers come from the system, so they cannot be predicted.
    """
    if not milliseconds:
        return 0
    most = min(milliseconds // SHARE, LONGEST_MILLISECONDS)
    return milliseconds + (int.from_bytes(os.urandom(4)) * (most + 1) >> 32)
