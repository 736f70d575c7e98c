"""Compares what the tables should hold with what they do hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from blog.paths import path_to_url

from demo.due import NO_PAGE, Due
from django_hitcount.refusals import get_refusals

WIDEST_PATH = 60
"""A longer path pushes its own figures to the right."""

ERROR = 0.04
"""Redis estimates visitors: this is five times the standard error of its HyperLogLogs."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the tables hold of the counter "views"."""

    refused: dict[str, int]
    """Refused hits by reason."""

    hits: dict[str, int]
    """By path."""

    visitors: dict[str, int]
    """By path, each counted once a day."""

    hits_by_day: dict[date, int]


@dataclass(frozen=True, slots=True)
class RefusalRow:
    reason: str
    requests: int
    stored: int

    @property
    def agrees(self) -> bool:
        return self.stored == (0 if self.reason == NO_PAGE else self.requests)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRow:
    path: str
    requests: int = 0
    hits_due: int = 0
    hits: int = 0
    visitors_due: int = 0
    visitors: int = 0

    @property
    def agrees(self) -> bool:
        return self.hits == self.hits_due and is_plausible(self.visitors, self.visitors_due)


@dataclass(frozen=True, slots=True)
class DayRow:
    day: date
    requests: int
    hits_due: int
    hits: int

    @property
    def agrees(self) -> bool:
        return self.hits == self.hits_due


def is_plausible(estimate: int, visitors: int) -> bool:
    """True if this is a plausible estimate. For no visitor or one, it has to be exact."""
    error = min(visitors - 1, 2 + ERROR * visitors) if visitors else 0
    return visitors - error <= estimate <= visitors + error


def marked(row: RefusalRow | DayRow | PageRow, line: str) -> str:
    return line if row.agrees else f"{line}  DIFFERS"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    refusals: list[RefusalRow]
    """The most frequent first."""

    days: list[DayRow]
    """The first day first."""

    pages: list[PageRow]
    """The most read first."""

    failures: int = 0
    """Page requests that the site did not answer as expected."""

    @classmethod
    def compare(cls, due: Due, stored: Stored, *, failures: int = 0) -> Report:
        refusals = [
            RefusalRow(reason, due.refused[reason], stored.refused.get(reason, 0))
            for reason in due.refused.keys() | stored.refused.keys()
        ]
        days = [
            DayRow(
                day, due.requests_by_day[day], due.hits_by_day[day], stored.hits_by_day.get(day, 0)
            )
            for day in sorted(due.requests_by_day.keys() | stored.hits_by_day.keys())
        ]
        pages = [
            PageRow(
                path=path,
                requests=due.requests[path],
                hits_due=due.hits[path],
                hits=stored.hits.get(path, 0),
                visitors_due=len(due.visitors.get(path, ())),
                visitors=stored.visitors.get(path, 0),
            )
            for path in due.requests.keys() | stored.hits.keys() | stored.visitors.keys()
        ]
        return cls(
            refusals=sorted(refusals, key=lambda row: (-row.requests, row.reason)),
            days=days,
            pages=sorted(pages, key=lambda row: (-row.hits_due, -row.requests, row.path)),
            failures=failures,
        )

    @property
    def agrees(self) -> bool:
        rows = [*self.refusals, *self.days, *self.pages]
        return not self.failures and self._total().agrees and all(row.agrees for row in rows)

    def _total(self) -> PageRow:
        """A sum over the pages, which may differ less than each of them."""
        columns = ("requests", "hits_due", "hits", "visitors_due", "visitors")
        sums = {name: sum(getattr(row, name) for row in self.pages) for name in columns}
        return PageRow(path="", **sums)

    def lines(self) -> Iterator[str]:
        yield ""
        yield from self._refusal_lines()
        yield ""
        yield from self._day_lines()
        yield ""
        yield from self._page_lines()
        yield ""
        yield self._verdict()

    def _refusal_lines(self) -> Iterator[str]:
        total = self._total()
        sentences = {item.name: str(item.reason) for item in get_refusals()}
        sentences[NO_PAGE] = "Neither GET nor HEAD: the site does not show the page."
        yield f"{'refused as':12}  requests    share  in the table"
        for row in self.refusals:
            yield marked(
                row,
                f"{row.reason:12}  {row.requests:8,}  {row.requests / total.requests:7.1%}  "
                f"{row.stored:12,}  {sentences.get(row.reason, '')}",
            )
        share = total.hits_due / total.requests
        yield f"{'(counted)':12}  {total.hits_due:8,}  {share:7.1%}  {total.hits:12,}"

    def _day_lines(self) -> Iterator[str]:
        yield f"{'day':12}  requests  hits due  in the table"
        for row in self.days:
            yield marked(row, f"{row.day}    {row.requests:8,}  {row.hits_due:8,}  {row.hits:12,}")

    def _page_lines(self) -> Iterator[str]:
        width = min(max(len(path_to_url(row.path)) for row in self.pages), WIDEST_PATH)
        yield f"{'':{width}}            ------ hits ------  ---- visitors ----"
        yield f"{'page':{width}}  requests       due  in table       due  estimate"
        for row in self.pages:
            yield marked(
                row,
                f"{path_to_url(row.path):{width}}  {row.requests:8,}  {row.hits_due:8,}  "
                f"{row.hits:8,}  {row.visitors_due:8,}  {row.visitors:8,}",
            )

    def _verdict(self) -> str:
        total = self._total()
        figures = (
            f"{total.hits_due:,} hits due, {total.hits:,} in the table; "
            f"{total.visitors_due:,} visitors due, {total.visitors:,} in the table's estimate"
        )
        if self.agrees:
            return f"They agree on each of {len(self.pages):,} pages: {figures}."
        differing = sum(not row.agrees for row in self.pages)
        reasons = sum(not row.agrees for row in self.refusals)
        days = sum(not row.agrees for row in self.days)
        return (
            f"They DISAGREE on {differing:,} of {len(self.pages):,} pages and on {reasons:,} "
            f"reasons to refuse: {figures}; {days:,} of {len(self.days):,} days differ; "
            f"{self.failures:,} page requests failed."
        )
