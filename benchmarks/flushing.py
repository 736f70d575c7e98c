"""Compare flush_hits() with the raw upsert of the same rows through the same driver."""

from __future__ import annotations

import datetime
import gc
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from django.db import transaction
from django_redis import get_redis_connection

from benchmarks import databases, statements
from benchmarks.app.models import Article
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import alternate, seconds_of
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import LastBatch
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import DailyHitSlot, HitSlot

PARTITIONS = 16
ONLY_SLOT = 1
"""A flush writes into a random slot. With one slot, the second flush finds the first one's rows."""

DAY = datetime.date(2024, 2, 29)
SIZES = (20_000, 100_000)
QUICK_SIZES = (2_000,)
TURNS = 3
QUICK_TURNS = 1
HITS_PER_CALL = 1000

Transaction = Sequence[statements.Statement]


def run(options: Options) -> list[Target]:
    rows, targets = [], []
    for alias in options.databases:
        for size in QUICK_SIZES if options.quick else SIZES:
            for is_fresh in (True, False):
                turns = QUICK_TURNS if options.quick else TURNS
                raw, ours = _rates(alias, size, is_fresh=is_fresh, turns=turns)
                where = f"{alias}, {size:,} {'fresh' if is_fresh else 'existing'} rows"
                rows.append([where, thousands(raw), thousands(ours), times(ours / raw)])
                what = f"{where}: flush_hits() / raw upsert"
                targets.append(Target(what=what, ratio=ours / raw, at_least=0.5))
    print_table(
        "Flush: counters per second, each a row in both tables",
        ["", "raw upsert", "flush_hits()", "ratio"],
        rows,
    )
    return targets


def _rates(alias: str, size: int, *, is_fresh: bool, turns: int) -> tuple[float, float]:
    """Counters per second by raw upserts and by flush_hits()."""
    with databases.using(alias), buffer("redis", SLOTS=ONLY_SLOT, PARTITIONS=PARTITIONS):
        hits = pending_hits(size)
        transactions = _transactions(hits)
        # The garbage collector must not walk through this test data while flush_hits() runs.
        gc.freeze()
        _set_up(transactions)
        set_up = partial(_set_up, []) if is_fresh else _leave
        seconds = alternate(
            {
                "raw": partial(_time_raw, transactions, set_up),
                "flush": partial(_time_flush, hits, set_up),
            },
            turns=turns,
        )
    return size / seconds["raw"], size / seconds["flush"]


def pending_hits(size: int) -> list[NewHits]:
    """A hit on each of ``size`` objects."""
    content_type_id = content_type_id_of(Article)
    first = 1_000_000
    keys = (CounterKey(content_type_id, str(first + n), "views") for n in range(size))
    return [NewHits(key, DAY, 1) for key in keys]


def fill_buffer(hits: Sequence[NewHits]) -> None:
    for start in range(0, len(hits), HITS_PER_CALL):
        get_buffer().record(hits[start : start + HITS_PER_CALL])


def _transactions(hits: Sequence[NewHits]) -> list[Transaction]:
    """The least that a flush of ``hits`` must write: one transaction per partition."""
    partitions: dict[int, list[NewHits]] = defaultdict(list)
    for hit in sorted(hits):
        partitions[hit.key.partition(PARTITIONS)].append(hit)
    return [
        [
            *statements.upserts(HitSlot, [(*hit.key, ONLY_SLOT, hit.amount) for hit in group]),
            *statements.upserts(
                DailyHitSlot, [(*hit.key, hit.day, ONLY_SLOT, hit.amount) for hit in group]
            ),
        ]
        for group in partitions.values()
    ]


def _leave() -> None:
    """Keep the rows that exist: the next turn adds to them."""


def _set_up(existing: Sequence[Transaction]) -> None:
    databases.empty(HitSlot, DailyHitSlot, LastBatch)
    _write(existing)


def _write(transactions: Sequence[Transaction]) -> None:
    for one in transactions:
        with transaction.atomic():
            statements.execute(one)


def _time_raw(transactions: Sequence[Transaction], set_up: Callable[[], None]) -> float:
    set_up()
    return seconds_of(lambda: _write(transactions))


def _time_flush(hits: Sequence[NewHits], set_up: Callable[[], None]) -> float:
    set_up()
    get_redis_connection("hitcount").flushdb()
    fill_buffer(hits)
    return seconds_of(flush_hits)
