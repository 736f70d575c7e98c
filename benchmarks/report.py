"""Print tables, and compare figures with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A ratio, and the limit that it should keep."""

    what: str
    ratio: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_met(self) -> bool:
        if self.at_most is not None:
            return self.ratio <= self.at_most
        return self.ratio >= (self.at_least or 0)

    def row(self) -> list[str]:
        limit = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
        return [self.what, f"{self.ratio:.2f}", limit, "met" if self.is_met else "MISSED"]


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column is aligned left, the others right."""
    lines = [[*header], *([*row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    print(f"\n{title}\n")
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join(cells).rstrip(), flush=True)


def print_summary(targets: Sequence[Target]) -> None:
    print_table("Summary", ["ratio", "figure", "target", ""], [t.row() for t in targets])


def thousands(number: float) -> str:
    return f"{number:,.0f}"


def times(ratio: float) -> str:
    return f"{ratio:.2f} x"
