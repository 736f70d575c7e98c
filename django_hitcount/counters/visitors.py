"""A number of visitors."""

from __future__ import annotations

from typing import Self


class Visitors(int):
    """
    How many visitors a counter had in a range of days, as an int with two more attributes.

    With Redis, the number is an estimate by HyperLogLog, with a standard error of 0.81 %.
    Without Redis, the visitors of each day are counted one by one.
    """

    spans: int
    """
    How many spans of days the range has. A visitor is counted once in each span.

    A span ends when the visitor key rotates, and without Redis each night. Visitors of two spans
    cannot be compared, so one who came in both is counted twice.
    """

    def __new__(cls, count: int, spans: int) -> Self:
        visitors = super().__new__(cls, count)
        visitors.spans = spans
        return visitors

    @property
    def is_distinct(self) -> bool:
        """Whether each visitor is counted once, because all days are in one span."""
        return self.spans <= 1

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]
        return int(self), self.spans

    def __repr__(self) -> str:
        return f"Visitors({int(self)}, spans={self.spans})"

    __str__ = int.__repr__
