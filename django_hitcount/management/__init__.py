"""The commands, and what they print about numbers."""

from __future__ import annotations


def count_of(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun: "1 batch", "2 batches"."""
    return f"{number} {singular if number == 1 else plural}"
