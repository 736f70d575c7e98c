"""Load files of made-up traffic into the tables, in the fastest way of each database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, models

from benchmarks import databases
from benchmarks.app.models import Story
from benchmarks.traffic_files import TrafficFiles
from django_hitcount.db.tables import DailyModelHits, StaleTotal
from django_hitcount.models import DailyHitSlot, HitSlot

TABLES = (HitSlot, DailyHitSlot, DailyModelHits)

MARIADB_MEMORY = 2 * 1024**3
"""
The buffer pool of MariaDB in bytes: it reads its files past the cache of the operating system.

Its default of 128 MB would make each query wait for the disk, unlike on any server of this size.
"""

SLOT_COLUMNS = ("slot", "hits")


def load(files: TrafficFiles) -> None:
    """Empty the tables of the current database, and load them."""
    empty_tables()
    with _indexes_built_at_the_end():
        _copy(Story, ("id", "title", "views_total"), files.stories)
        _copy(HitSlot, (*HitSlot.KEY, *SLOT_COLUMNS), files.totals)
        _copy(DailyHitSlot, (*DailyHitSlot.KEY, *SLOT_COLUMNS), files.daily)
    _copy(DailyModelHits, (*DailyModelHits.KEY, "hits"), files.models)
    _copy(HitSlot, (*HitSlot.KEY, *SLOT_COLUMNS), files.uncompacted_totals)
    _copy(DailyHitSlot, (*DailyHitSlot.KEY, *SLOT_COLUMNS), files.uncompacted_daily)
    analyze()


def empty_tables() -> None:
    databases.empty(Story, *TABLES, StaleTotal)


def give_memory() -> None:
    """Let MariaDB keep all rows in memory, as PostgreSQL does by the operating system's cache."""
    if _is_mariadb():
        _execute(f"SET GLOBAL innodb_buffer_pool_size = {MARIADB_MEMORY}")


def analyze() -> None:
    """Let the planner of the current database see how many rows there are."""
    statement = "ANALYZE TABLE" if _is_mariadb() else "VACUUM ANALYZE"
    for model in (Story, *TABLES):
        _execute(f"{statement} {model._meta.db_table}")


def _copy(model: type[models.Model], columns: Sequence[str], path: Path) -> None:
    """Load a file, which the server itself reads."""
    table, names = model._meta.db_table, ", ".join(columns)
    if _is_mariadb():
        _execute(f"LOAD DATA INFILE '{path}' INTO TABLE {table} ({names})")
    else:
        _execute(f"COPY {table} ({names}) FROM '{path}'")


@contextmanager
def _indexes_built_at_the_end() -> Iterator[None]:
    """Drop indexes while rows are loaded; MariaDB does so itself if it need not check rows."""
    if _is_mariadb():
        _execute("SET unique_checks = 0, foreign_key_checks = 0")
        yield
        _execute("SET unique_checks = 1, foreign_key_checks = 1")
        return
    models = (HitSlot, DailyHitSlot)
    with connection.schema_editor() as editor:
        for model in models:
            for constraint in model._meta.constraints:
                editor.remove_constraint(model, constraint)
            for index in model._meta.indexes:
                editor.remove_index(model, index)
    yield
    with connection.schema_editor() as editor:
        for model in models:
            for constraint in model._meta.constraints:
                editor.add_constraint(model, constraint)
            for index in model._meta.indexes:
                editor.add_index(model, index)


def _is_mariadb() -> bool:
    return connection.vendor == "mysql"


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
