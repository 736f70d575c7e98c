"""Compare import_hits() with a function that records one row at a time, as one writes by hand."""

from __future__ import annotations

import csv
import datetime
import tempfile
from pathlib import Path

from benchmarks import databases
from benchmarks.app.models import Article
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import seconds_of
from django_hitcount import get_hits, import_hits, record_hit, undo_import
from django_hitcount.db.tables import Import, ImportedHits
from django_hitcount.importing import CsvFiles
from django_hitcount.models import DailyHitSlot, HitSlot

FIRST_DAY = datetime.date(2024, 1, 1)
DAYS = 10
OBJECTS, QUICK_OBJECTS = 10_000, 100
BY_HAND, QUICK_BY_HAND = 500, 20
"""Rows of the slow way."""

TURNS, QUICK_TURNS = 3, 1

IMPORT_ID = "benchmark"


def run(options: Options) -> list[Target]:
    rows, targets = [], []
    for alias in options.databases:
        for name in ("database", "redis"):
            by_hand, ours, undone = _rates(alias, name, quick=options.quick)
            where = f"{alias}, {'with' if name == 'redis' else 'without'} Redis"
            figures = map(thousands, (by_hand, ours, undone))
            rows.append([where, *figures, times(ours / by_hand)])
            targets.append(
                Target(what=f"{where}: import_hits() / by hand", ratio=ours / by_hand, at_least=20)
            )
    print_table(
        "Import: rows of a CSV file per second, each the hits of an object on a day",
        ["", "by hand", "import_hits()", "undo_import()", "ratio"],
        rows,
    )
    return targets


def _rates(alias: str, name: str, *, quick: bool) -> tuple[float, float, float]:
    """Rows per second by hand, by import_hits(), and by undo_import()."""
    size = (QUICK_OBJECTS if quick else OBJECTS) * DAYS
    with databases.using(alias), buffer(name), tempfile.TemporaryDirectory() as directory:
        databases.empty(HitSlot, DailyHitSlot, Import, ImportedHits)
        articles = _make_articles(size // DAYS)
        path = Path(directory, "hits.csv")
        _write_csv(path, articles)
        some = articles[: QUICK_BY_HAND if quick else BY_HAND]
        by_hand = seconds_of(lambda: [_import_day(article) for article in some])
        imports, undos = [], []
        for _ in range(QUICK_TURNS if quick else TURNS):
            databases.empty(HitSlot, DailyHitSlot)
            imports.append(seconds_of(lambda: import_hits(CsvFiles([path]), import_id=IMPORT_ID)))
            undos.append(seconds_of(lambda: undo_import(IMPORT_ID)))
        return len(some) / by_hand, size / min(imports), size / min(undos)


def _make_articles(number: int) -> list[Article]:
    missing = number - Article.objects.count()
    Article.objects.bulk_create((Article(title="Tea") for _ in range(missing)), batch_size=1000)
    return [*Article.objects.order_by("pk")[:number]]


def _write_csv(path: Path, articles: list[Article]) -> None:
    """Day by day, as logs and exports are: not in the order of the tables."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["date", "object", "hits"])
        for number in range(DAYS):
            day = FIRST_DAY + datetime.timedelta(days=number)
            writer.writerows([day, f"app.article:{article.pk}", 3] for article in articles)


def _import_day(article: Article) -> None:
    """Record what is missing of a day, so that it can be repeated."""
    missing = 3 - get_hits(article, first_day=FIRST_DAY, last_day=FIRST_DAY)
    if missing > 0:
        record_hit(article, amount=missing, at=FIRST_DAY)
