"""What must be counted of a log, computed without the package."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.replay.access_log import Asked

INTERVAL_SECONDS = 1800
COUNTERS = {
    "views": {"visitors": True},
    "readers": {"repeat": "daily"},
    "sessions": {"repeat": INTERVAL_SECONDS},
}


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The counts of a log, by page, counter and day."""

    refused: dict[tuple[datetime.date, str, str], int]
    hits: dict[tuple[str, str, datetime.date], int]
    totals: dict[tuple[str, str], int]
    visitors: dict[tuple[str, datetime.date], int]


def due(log: Iterable[Asked]) -> Counts:
    refused, hits, totals, visitors = Counter(), Counter(), Counter(), Counter()
    seen, within_interval = set(), set()
    for asked in log:
        is_repeat = (asked.page, asked.day, asked.visitor) in seen
        # The servers' clocks stand still, compared with that of the log: an interval ends only
        # when the visitor key has changed.
        days = {asked.day, asked.day_after(-INTERVAL_SECONDS), asked.day_after(60)}
        is_soon = any((asked.page, day, asked.visitor) in within_interval for day in days)
        repeats = {"views": False, "readers": is_repeat, "sessions": is_soon}
        for counter, is_refused in repeats.items():
            refusal = asked.refusal or ("repeat" if is_refused else None)
            if refusal:
                refused[asked.day, counter, refusal] += 1
            else:
                hits[asked.page, counter, asked.day] += 1
                totals[asked.page, counter] += 1
        if not asked.refusal and not is_soon:
            within_interval.add((asked.page, asked.day, asked.visitor))
        if not asked.refusal and not is_repeat:
            seen.add((asked.page, asked.day, asked.visitor))
            visitors[asked.page, asked.day] += 1
    return Counts(refused=refused, hits=hits, totals=totals, visitors=visitors)
