"""What a report shows: typed rows, and the numbers that are calculated from them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Model

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.reports.charts import BarChart, bar_chart
from django_hitcount.reports.periods import Period
from django_hitcount.reports.selection import Selection

Days = Mapping[datetime.date, int]
"""Hits by day, in order and without gaps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectRow:
    """An object of a ranking."""

    key: ObjectKey
    number: int
    """Its place, from 1."""

    name: str
    obj: Model | None
    """None if it is deleted, or was not loaded."""

    model_name: str
    hits: int
    before: int | None
    """The hits of the period before; None for today, which is not over."""

    share: float | None = None
    """Percent of all hits of the period, if the table shows it."""

    visitors: int | None = None
    """None if nobody counted them, if they are not shown, or cannot be read now."""

    @property
    def more(self) -> int | None:
        """How many more hits than before."""
        return None if self.before is None else self.hits - self.before

    @property
    def change(self) -> float | None:
        """How many percent more hits than before; None if there were none to compare with."""
        return change_of(self.hits, self.before)


class RefusedRow(NamedTuple):
    """The hits that were refused for one reason."""

    refusal: str
    reason: str
    hits: int
    share: float | None
    """Percent of all refused hits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All numbers of a report."""

    selection: Selection
    hits: Days
    before: Days
    today: int | None
    """The hits of today so far, beside a period that is over; None if it ended ten years ago."""

    top: Sequence[ObjectRow]
    rising: Sequence[ObjectRow]
    falling: Sequence[ObjectRow]
    is_certain: bool
    """Whether no other object rose or fell as much as these."""

    refused: Sequence[RefusedRow]

    @property
    def total(self) -> int:
        return sum(self.hits.values())

    @property
    def total_before(self) -> int | None:
        """None for today, which is not over."""
        return sum(self.before.values()) if self.before else None

    @property
    def change(self) -> float | None:
        """How many percent more hits than before; None if there were none to compare with."""
        return change_of(self.total, self.total_before)

    @property
    def per_day(self) -> float:
        """The mean of all days: two significant digits below 10, else a whole number."""
        mean = self.total / len(self.hits)
        short = float(f"{mean:.2g}")
        return short if abs(short) < 10 and not short.is_integer() else round(mean)

    @property
    def best(self) -> tuple[datetime.date, int]:
        """The day with the most hits, the newest of several, and its hits."""
        return max(self.hits.items(), key=lambda item: (item[1], item[0]))

    @property
    def lacks_visitors(self) -> bool:
        """Whether nobody counted the visitors of some of the objects."""
        return None in [row.visitors for row in self.top]

    @property
    def refused_hits(self) -> int:
        return sum(row.hits for row in self.refused)

    @property
    def refused_share(self) -> float | None:
        """
        Percent of all hits of the period, counted or refused. None in a report on one model:
        refused hits are counted for all models together.
        """
        if self.selection.model:
            return None
        return share_of(self.refused_hits, self.refused_hits + self.total)

    @property
    def chart(self) -> BarChart:
        return bar_chart(self.hits, self.before if self.has_before else None)

    @property
    def has_before(self) -> bool:
        """Whether there are hits to compare with."""
        return any(self.before.values())

    @property
    def is_empty(self) -> bool:
        """Whether no hits were counted, neither in the period nor before."""
        return not any(self.hits.values()) and not self.has_before


def pick_days(days: Days, period: Period | None) -> Days:
    """Return the days of a period; none without one."""
    return {day: days[day] for day in period.list_days()} if period else {}


def change_of(hits: int, before: int | None) -> float | None:
    """Return how many percent more hits there are; None if there were none before."""
    return 100 * (hits - before) / before if before and before > 0 else None


def share_of(part: int, whole: int) -> float | None:
    """Return the percentage; None if there is none, as of hits that were taken back."""
    return 100 * part / whole if 0 <= part <= whole and whole else None


def refused_rows(refused: Mapping[str, int], reasons: Mapping[str, str]) -> list[RefusedRow]:
    """Return the rows of refused hits by refusal, the most frequent first."""
    whole = sum(refused.values())
    return [
        RefusedRow(refusal, reasons.get(refusal, ""), hits, share_of(hits, whole))
        for refusal, hits in sorted(refused.items(), key=lambda item: (-item[1], item[0]))
    ]
