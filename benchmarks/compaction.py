"""Compare compact() with two statements that fold a whole table at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.db import transaction

from benchmarks import databases, statements
from benchmarks.flushing import pending_hits
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import alternate, seconds_of
from django_hitcount.maintenance.compaction import compact
from django_hitcount.models import DailyHitSlot, HitSlot

COUNTERS = 5_000
QUICK_COUNTERS = 500
SLOTS_WRITTEN = (7, 23, 42, 61)
TURNS = 5
QUICK_TURNS = 1


def run(options: Options) -> list[Target]:
    counters = QUICK_COUNTERS if options.quick else COUNTERS
    size = 2 * counters * len(SLOTS_WRITTEN)
    rows = []
    for alias in options.databases:
        with databases.using(alias), buffer("database"):
            seconds = alternate(
                {"all at once": partial(_time, _fold_at_once, counters)}
                | {"compact()": partial(_time, compact, counters)},
                turns=QUICK_TURNS if options.quick else TURNS,
            )
        at_once, ours = (size / value for value in seconds.values())
        rows.append([alias, thousands(at_once), thousands(ours), times(ours / at_once)])
    print_table(
        f"Compaction: rows per second, of {size:,} rows in {len(SLOTS_WRITTEN)} slots",
        ["", "all at once", "compact()", "ratio"],
        rows,
    )
    return []


def _time(fold: Callable[[], object], counters: int) -> float:
    databases.empty(HitSlot, DailyHitSlot)
    _write_slots(counters)
    return seconds_of(fold)


def _write_slots(counters: int) -> None:
    hits = sorted(pending_hits(counters))
    for slot in (0, *SLOTS_WRITTEN):
        totals = [(*hit.key, slot, hit.amount) for hit in hits]
        daily = [(*hit.key, hit.day, slot, hit.amount) for hit in hits]
        with transaction.atomic():
            statements.execute(statements.upserts(HitSlot, totals))
            statements.execute(statements.upserts(DailyHitSlot, daily))


def _fold_at_once() -> None:
    for model in (HitSlot, DailyHitSlot):
        with transaction.atomic():
            statements.execute(statements.fold(model))
