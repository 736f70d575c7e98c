"""Write made-up traffic to files, a file per table and day, with columns separated by tabs."""

from __future__ import annotations

import datetime
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TextIO

from benchmarks.traffic import SEED, Traffic
from django_hitcount import conf
from django_hitcount.counters.days import day_of, open_days

COUNTER = "views"


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    objects: int
    days: int
    uncompacted: int
    """Rows of DailyHitSlot in slots 1..N, of today and yesterday."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficFiles:
    directory: Path
    size: Size
    content_type_id: int
    """The content type id of the objects: columns of a file have no default."""

    @property
    def stories(self) -> Path:
        """Primary key, title, total in slot 0."""
        return self.directory / "stories"

    @property
    def totals(self) -> Path:
        """Rows of HitSlot."""
        return self.directory / "totals"

    @property
    def daily(self) -> Path:
        """Rows of DailyHitSlot, in the order in which a site writes them."""
        return self.directory / "daily"

    @property
    def models(self) -> Path:
        """Rows of DailyModelHits."""
        return self.directory / "models"

    @property
    def uncompacted_totals(self) -> Path:
        return self.directory / "uncompacted-totals"

    @property
    def uncompacted_daily(self) -> Path:
        return self.directory / "uncompacted-daily"

    def write(self) -> None:
        """Write the files: a minute per million objects."""
        traffic = Traffic(objects=self.size.objects, days=self.size.days)
        with ExitStack() as stack:
            paths = [self.directory / f"day-{number}" for number in range(self.size.days)]
            days = [stack.enter_context(path.open("w")) for path in paths]
            totals = stack.enter_context(self.totals.open("w"))
            stories = stack.enter_context(self.stories.open("w"))
            per_day = self._write_objects(traffic, days, totals, stories)
        _join(paths, self.daily)
        self._write_rows(
            self.models, ((COUNTER, self._day(n), hits) for n, hits in per_day.items())
        )
        self._write_uncompacted(traffic)

    def remove(self) -> None:
        shutil.rmtree(self.directory)

    def _write_objects(
        self, traffic: Traffic, days: list[TextIO], totals: TextIO, stories: TextIO
    ) -> Counter[int]:
        per_day = Counter[int]()
        ends = [f"{COUNTER}\t{self._day(number)}\t0" for number in range(self.size.days)]
        for key in range(1, self.size.objects + 1):
            total = 0
            start = f"{self.content_type_id}\t{key}"
            for number, hits in traffic.daily_hits(key):
                days[number].write(f"{start}\t{ends[number]}\t{hits}\n")
                per_day[number] += hits
                total += hits
            stories.write(f"{key}\tStory {key}\t{total}\n")
            if total:
                totals.write(f"{start}\t{COUNTER}\t0\t{total}\n")
        return per_day

    def _day(self, number: int) -> datetime.date:
        return day_of() - datetime.timedelta(days=self.size.days - 1 - number)

    def _write_uncompacted(self, traffic: Traffic) -> None:
        random = Random(SEED)
        slots = conf.get_config().slots
        daily = Counter[tuple[int, str, datetime.date, int]]()
        while len(daily) < self.size.uncompacted:
            key = traffic.draw_key()
            slot = random.randint(1, slots)
            daily[key, COUNTER, random.choice(open_days()), slot] += 1
        totals = Counter[tuple[int, str, int]]()
        for (key, counter, _, slot), hits in daily.items():
            totals[key, counter, slot] += hits
        self._write_rows(self.uncompacted_daily, ((*key, daily[key]) for key in sorted(daily)))
        self._write_rows(self.uncompacted_totals, ((*key, totals[key]) for key in sorted(totals)))

    def _write_rows(self, path: Path, rows: Iterable[tuple[object, ...]]) -> None:
        with path.open("w") as file:
            for row in rows:
                file.write("\t".join(map(str, (self.content_type_id, *row))) + "\n")


def _join(paths: Iterable[Path], whole: Path) -> None:
    with whole.open("wb") as file:
        for path in paths:
            with path.open("rb") as part:
                shutil.copyfileobj(part, file)
            path.unlink()
