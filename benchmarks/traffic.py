"""Make up the traffic of a large site, the same at each call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

HITS_OF_TOP = 0.028
"""
Hits of the most viewed object on one day, per object of the site.

With this, each object has 10 rows of 90 days on average: the first ones a row for each day, most of
the others two or three.
"""

WEEK = (1.1, 1.15, 1.1, 1.05, 1.0, 0.75, 0.85)
"""How the days of a week differ."""

NEWS_EVERY = 20
"""One object of so many is news: hits come from one day on, and become fewer."""

NEWS_DECAY = 0.84
"""What is left of the hits of news on the next day: half of them after four days."""

SEED = 9
STEP = 611_953
"""A prime: it spreads popular objects over all primary keys."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """
    Hits of objects on days. The popularity of objects follows Zipf's law.

    Primary keys go from 1 to ``objects``, days from 0 to ``days - 1``.
    """

    objects: int
    days: int

    def daily_hits(self, key: int) -> Iterator[tuple[int, int]]:
        """Yield the days on which an object has hits, and how many. Call it in order of keys."""
        rank = key * STEP % self.objects + 1
        mean = HITS_OF_TOP * self.objects / rank
        if rank % NEWS_EVERY == 7:
            return self._news(mean)
        return self._steady(mean) if mean > 0.5 else self._rare(mean)

    @cached_property
    def _random(self) -> Random:
        return Random(SEED)

    def _steady(self, mean: float) -> Iterator[tuple[int, int]]:
        for day in range(self.days):
            if hits := self._poisson(mean * WEEK[day % len(WEEK)]):
                yield day, hits

    def _rare(self, mean: float) -> Iterator[tuple[int, int]]:
        """Jump from hit to hit: most objects have none on most days."""
        day = self._gap(mean)
        while day < self.days:
            yield day, 1 + (self._random.random() < mean / 2)
            day += 1 + self._gap(mean)

    def _gap(self, mean: float) -> int:
        return int(-math.log(1 - self._random.random()) / mean)

    def _news(self, mean: float) -> Iterator[tuple[int, int]]:
        first = self._random.randrange(self.days)
        mean *= self.days * (1 - NEWS_DECAY)
        for day in range(first, self.days):
            if mean < 0.001:
                return
            if hits := self._poisson(mean):
                yield day, hits
            mean *= NEWS_DECAY

    def _poisson(self, mean: float) -> int:
        """Draw from a Poisson distribution: exactly if ``mean`` is small (Knuth), else nearly."""
        if mean > 12:
            return max(0, round(self._random.gauss(mean, math.sqrt(mean))))
        limit, product, hits = math.exp(-mean), self._random.random(), 0
        while product > limit:
            product *= self._random.random()
            hits += 1
        return hits

    def draw_key(self) -> int:
        """Draw an object; popular ones come more often."""
        rank = int(self.objects ** self._random.random())
        return (rank - 1) * pow(STEP, -1, self.objects) % self.objects or self.objects
