"""Measure flush and compaction with the index and rows of rankings and series, and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from statistics import median
from unittest.mock import patch

from django.db import connection

from benchmarks import databases
from benchmarks.app.models import Story
from benchmarks.flushing import fill_buffer
from benchmarks.report import print_table, thousands, times
from benchmarks.timing import seconds_of
from benchmarks.traffic import Traffic
from benchmarks.traffic_files import COUNTER
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import LastBatch
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import DailyHitSlot

INDEX = "hitcount_daily_most"
FLUSHES, QUICK_FLUSHES = 4, 1
"""Flushes before each compaction: popular counters have a row of each."""

COUNTERS_PER_OBJECT = 0.02
"""How many counters a flush finds, per object of the site."""

TURNS, QUICK_TURNS = 3, 1


def measure(alias: str, *, objects: int, quick: bool) -> None:
    hits = _draw_hits(objects)
    flushes = QUICK_FLUSHES if quick else FLUSHES
    turns = QUICK_TURNS if quick else TURNS
    rates = {}
    compact()  # The first compaction has more to do than the others.
    for name, surroundings in _variants().items():
        with surroundings():
            rates[name] = _rates(hits, flushes=flushes, turns=turns)
    all_flush, all_compact = rates["all"]
    print_table(
        f"Flush and compaction of {len(hits):,} counters among {objects:,}, per second, {alias}",
        ["", "flushed counters", "beside all", "compacted rows", "beside all"],
        [
            [
                name,
                thousands(flushed),
                times(flushed / all_flush),
                thousands(compacted),
                times(compacted / all_compact),
            ]
            for name, (flushed, compacted) in rates.items()
        ],
    )


def _variants() -> dict[str, Callable[[], AbstractContextManager[object]]]:
    return {
        "all": nullcontext,
        "without DailyModelHits": _no_model_hits,
        f"without the index {INDEX}": _no_index,
    }


def _rates(hits: list[NewHits], *, flushes: int, turns: int) -> tuple[float, float]:
    """Return the counters flushed and the rows compacted per second."""
    flushed, compacted = [], []
    for _ in range(turns):
        flushed += [_time_flush(hits) for _ in range(flushes)]
        rows = 0

        def work() -> None:
            nonlocal rows
            rows = compact().rows

        seconds = seconds_of(work)
        compacted.append(rows / seconds)
    return len(hits) / median(flushed), median(compacted)


def _time_flush(hits: list[NewHits]) -> float:
    databases.empty(LastBatch)
    fill_buffer(hits)
    return seconds_of(flush_hits)


def _draw_hits(objects: int) -> list[NewHits]:
    """Draw objects by their popularity."""
    traffic = Traffic(objects=objects, days=1)
    wanted = round(objects * COUNTERS_PER_OBJECT)
    amounts = Counter[int]()
    while len(amounts) < wanted:
        amounts[traffic.draw_key()] += 1
    model, day = content_type_id_of(Story), day_of()
    return [
        NewHits(CounterKey(model, str(key), COUNTER), day, amount)
        for key, amount in amounts.items()
    ]


@contextmanager
def _no_model_hits() -> Iterator[None]:
    with patch.object(slots, "add_to_models", lambda rows, *, sign: None):
        yield


@contextmanager
def _no_index() -> Iterator[None]:
    (index,) = (index for index in DailyHitSlot._meta.indexes if index.name == INDEX)
    with connection.schema_editor() as editor:
        editor.remove_index(DailyHitSlot, index)
    yield
    with connection.schema_editor() as editor:
        editor.add_index(DailyHitSlot, index)
