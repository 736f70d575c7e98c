"""Compares the hits that were sent with the hits that reached the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blog.paths import path_to_url

WIDEST_PATH = 80
"""A longer one pushes its figures to the right, and only its own."""


@dataclass(frozen=True, slots=True)
class Row:
    path: str
    sent: int
    stored: int

    @property
    def agrees(self) -> bool:
        return self.sent == self.stored


@dataclass(frozen=True, slots=True)
class Report:
    rows: list[Row]
    """The most read page first."""

    failures: int
    """Page views that the site did not answer as it should."""

    @classmethod
    def compare(
        cls, sent: Mapping[str, int], stored: Mapping[str, int], *, failures: int = 0
    ) -> Report:
        paths = sent.keys() | stored.keys()
        rows = [Row(path, sent.get(path, 0), stored.get(path, 0)) for path in paths]
        return cls(sorted(rows, key=lambda row: (-row.sent, row.path)), failures)

    @property
    def agrees(self) -> bool:
        return not self.failures and all(row.agrees for row in self.rows)

    def lines(self) -> Iterator[str]:
        width = min(max(len(path_to_url(row.path)) for row in self.rows), WIDEST_PATH)
        yield f"{'page':{width}}  hits sent  hits in the table"
        for row in self.rows:
            mark = "" if row.agrees else "  DIFFERS"
            yield f"{path_to_url(row.path):{width}}  {row.sent:9,}  {row.stored:17,}{mark}"
        yield self._verdict()

    def _verdict(self) -> str:
        sent = sum(row.sent for row in self.rows)
        stored = sum(row.stored for row in self.rows)
        figures = f"{sent:,} hits sent, {stored:,} hits in the table"
        if self.agrees:
            return f"They agree on each of {len(self.rows):,} pages: {figures}."
        differing = sum(not row.agrees for row in self.rows)
        return (
            f"They DISAGREE on {differing:,} of {len(self.rows):,} pages: {figures}; "
            f"{self.failures:,} page views failed."
        )
