"""
Made-up visits of some weeks: who read what, and when.

Readers come more often on working days and by day, and every week a few more. Few articles get most
of the visits, new ones get more than old ones, and one went viral. The same day always has the same
visits, counted from today.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

DAYS = 63
VIRAL_PATH = "how-to-lose-count"
VIRAL_DAYS_AGO = 16
VIRAL_VISITS = 260
"""Additional visits on the best day of the article that went viral."""

VISITS = 24
"""Of an average day at the beginning; at the end there are twice as many."""

READERS = 2000
"""People who come once or several times."""

WEEKDAYS = (1.15, 1.2, 1.2, 1.1, 1.0, 0.7, 0.75)
HOURS = (2, 1, 1, 1, 1, 2, 4, 7, 10, 11, 11, 10, 12, 11, 10, 9, 9, 9, 10, 11, 12, 11, 8, 5)
PAGES_PER_VISIT = ((0, 1, 2, 3), (12, 60, 20, 8))
HITS_PER_PAGE = ((1, 2, 3), (85, 12, 3))
FRONT_PAGE_SHARE = 0.35

BROWSERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "Mozilla/5.0 (Linux; Android 15; K) AppleWebKit/537.36 Chrome/138.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
)


@dataclass(frozen=True, slots=True)
class Readable:
    """An article that may be read."""

    path: str
    published_at: datetime
    rank: int
    """1 for the article that is read most, if all are equally old."""

    def weight_on(self, moment: datetime) -> float:
        """How much it is read; 0 before it is published."""
        age_days = (moment - self.published_at) / timedelta(days=1)
        if age_days < 0:
            return 0.0
        return (0.4 + 3 * math.exp(-age_days / 4)) / self.rank


@dataclass(frozen=True, slots=True)
class Visit:
    at: datetime
    address: str
    """One of the range for documentation, so that it is nobody's."""

    user_agent: str
    paths: tuple[str, ...]
    hits: int
    """How often each of the pages is viewed."""


def make_visits(midnight: datetime, *, days_ago: int, articles: Sequence[Readable]) -> list[Visit]:
    """Make up the visits of the day that begins at ``midnight``, in the order of time."""
    chance = random.Random(f"The Tally, {days_ago} days ago")
    growth = 2 - days_ago / DAYS
    visits = VISITS * growth * WEEKDAYS[midnight.weekday()] * chance.uniform(0.85, 1.15)
    found = [*_ordinary_visits(chance, midnight, round(visits), articles)]
    found += _viral_visits(chance, midnight, round(VIRAL_VISITS * virality(days_ago)))
    return sorted(found, key=lambda visit: visit.at)


def virality(days_ago: int) -> float:
    """How viral the article is, from 0 to 1: a day to spread, then half as much every two days."""
    days = VIRAL_DAYS_AGO - days_ago
    if days < 0:
        return 0.0
    return 0.6 if days == 0 else 0.5 ** ((days - 1) / 2)


def _ordinary_visits(
    chance: random.Random, midnight: datetime, visits: int, articles: Sequence[Readable]
) -> Iterator[Visit]:
    for _ in range(visits):
        at = _moment(chance, midnight)
        weights = [article.weight_on(at) for article in articles]
        (pages,) = chance.choices(*PAGES_PER_VISIT)
        chosen = chance.choices(articles, weights, k=pages) if any(weights) else []
        paths = {article.path: None for article in chosen}
        if not paths or chance.random() < FRONT_PAGE_SHARE:
            paths = {"": None, **paths}
        yield _visit(chance, at, tuple(paths))


def _viral_visits(chance: random.Random, midnight: datetime, visits: int) -> Iterator[Visit]:
    for _ in range(visits):
        yield _visit(chance, _moment(chance, midnight), (VIRAL_PATH,))


def _moment(chance: random.Random, midnight: datetime) -> datetime:
    (hour,) = chance.choices(range(24), HOURS)
    return midnight + timedelta(hours=hour, seconds=chance.randrange(3600))


def _visit(chance: random.Random, at: datetime, paths: tuple[str, ...]) -> Visit:
    reader = chance.randrange(READERS)
    (hits,) = chance.choices(*HITS_PER_PAGE)
    return Visit(at, f"2001:db8:{reader:x}::1", BROWSERS[reader % len(BROWSERS)], paths, hits)
