"""Rank, list and report a million objects, and measure what that costs when hits are written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks import admin_pages, databases, index_costs, loading, ranked_reads
from benchmarks.app.models import Story
from benchmarks.options import Options, buffer
from benchmarks.report import Target
from benchmarks.timing import seconds_of
from benchmarks.traffic_files import Size, TrafficFiles
from django_hitcount.db.counter_keys import content_type_id_of

DAYS = 90
UNCOMPACTED_PER_OBJECT = 0.05
DATABASES = ("mariadb", "postgresql")


def run(options: Options) -> list[Target]:
    targets = []
    place = os.environ["HITCOUNT_BENCHMARKS_DIRECTORY"]
    with tempfile.TemporaryDirectory(dir=place) as directory:
        Path(directory).chmod(0o755)  # The servers read it, as users of their own.
        for alias in options.databases:
            if alias in DATABASES:
                # A busy machine is no outage.
                with databases.using(alias), buffer("redis", REDIS_TIMEOUT_SECONDS=10):
                    _load(Path(directory, alias), options.objects)
                    targets += ranked_reads.measure(
                        alias, objects=options.objects, quick=options.quick
                    )
                    targets += admin_pages.measure(alias, quick=options.quick)
                    index_costs.measure(alias, objects=options.objects, quick=options.quick)
                    loading.empty_tables()
    return targets


def _load(directory: Path, objects: int) -> None:
    directory.mkdir(mode=0o755)
    size = Size(objects=objects, days=DAYS, uncompacted=round(objects * UNCOMPACTED_PER_OBJECT))
    files = TrafficFiles(directory=directory, size=size, content_type_id=content_type_id_of(Story))
    files.write()
    loading.give_memory()
    seconds = seconds_of(lambda: loading.load(files))
    rows = sum(1 for _ in files.daily.open())
    print(f"\n{databases.current()}: {objects:,} objects and {rows:,} daily rows of {DAYS} days,")
    print(f"of which {size.uncompacted:,} are not yet compacted; loaded in {seconds:.0f} s.")
    files.remove()
