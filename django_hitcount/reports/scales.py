"""The numbers beside the axis of a chart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

MOST_INTERVALS = 4
"""Intervals between the numbers of an axis: few enough to be quiet, many enough to read."""


def nice_ticks(lowest: int, highest: int) -> list[int]:
    """
    Return whole numbers, equally far apart, that begin at or below ``lowest`` and end above.

    They are multiples of 1, 2 or 5 times a power of ten, so people read them at a glance. At
    least 0 and 1 are among them.
    """
    low, high = min(lowest, 0), max(highest, 1)
    step = next(step for step in _steps() if high - low <= MOST_INTERVALS * step)
    return [*range(low // step * step, -(-high // step) * step + 1, step)]


def _steps() -> Iterator[int]:
    for power in count():
        yield from (digit * 10**power for digit in (1, 2, 5))
