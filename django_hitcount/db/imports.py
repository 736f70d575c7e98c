"""SQL on imports: begin and finish them, write their pieces, and take them back."""

from __future__ import annotations

import datetime
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import IntegrityError, models
from django.utils import timezone

from django_hitcount.counters import split
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.imports import Days, Row, find_common_days, unite_days
from django_hitcount.counters.keys import CounterKey, RefusedKey
from django_hitcount.db import daily_visitors, slots, sql, sums
from django_hitcount.db.tables import DailyVisitors, Import, ImportedHits, hits_alias
from django_hitcount.db.transactions import take_write_lock
from django_hitcount.exceptions import ImportRefused

T = TypeVar("T")

PATIENCE_SECONDS = 30.0
"""How long to retry a piece that meets locks before the import stops. It can be continued."""

KEYS_AT_A_TIME = 500
"""Counters of one query: few enough for the 999 parameters of an old SQLite."""

Added = ImportedHits | DailyVisitors
"""A row of what an import has added."""


def transact(work: Callable[[int], T]) -> T:
    """See slots.write_in_slot()."""
    return slots.write_in_slot(work, patience_seconds=PATIENCE_SECONDS)


def read_imports() -> list[Import]:
    """Read all imports, in the order in which they began. Costs a query."""
    return [*Import.objects.using(hits_alias()).order_by("pk")]


def check_import(name: str, strategy: str, days: Days = ()) -> Import:
    """
    Return the import ``name``, which may be new. Raise ImportRefused if it may not be begun or
    continued now, or if other imports have some of ``days``. Costs a query.
    """
    found = Import(name=name, strategy=strategy, days=[])
    for other in read_imports():
        if other.name == name:
            found = other
            if other.is_undone:
                raise ImportRefused(
                    f"An undo of the import {name!r} has begun. Finish it: undo it again."
                )
            if other.is_open and other.strategy != strategy:
                raise ImportRefused(
                    f"The import {name!r} has begun with the strategy {other.strategy!r}, not "
                    f"{strategy!r}. Finish it with that one, or undo it."
                )
        elif other.is_open:
            raise ImportRefused(
                f"The import {other.name!r} is not finished. Only one import runs at a time: run "
                "that one again, or undo it."
            )
        elif common := find_common_days(days, other.days):
            raise ImportRefused(
                f"The import {other.name!r} has already imported hits of {common}. Leave these "
                "days out, undo that import, or import both sources at once."
            )
    return found


def begin_import(name: str, strategy: str, days: Days) -> Import:
    """
    Begin an import, or continue it in place of another process.

    Costs a transaction of four statements. Raises ImportRefused.
    """
    using = hits_alias()

    def begin(slot: int) -> Import:
        take_write_lock(using, Import)
        # Locked: the other process may be writing a piece, and noting it in this row.
        [*Import.objects.using(using).filter(name=name).select_for_update()]
        made = check_import(name, strategy, days)
        made.days = unite_days([*made.days, *days])
        made.runner = secrets.token_hex(16)
        made.save(using=using)
        return made

    try:
        return transact(begin)
    except IntegrityError as exc:
        raise ImportRefused(
            f"Another import has begun at the same time as {name!r}. Only one import runs at a "
            "time: run it again after that one."
        ) from exc


def note(made: Import, **changes: Any) -> bool:
    """
    Note what an import has written, in the transaction that writes it. Costs a statement.

    Return False if that is noted already. Raises ImportRefused if another process has continued the
    import, or undoes it.
    """
    rows = Import.objects.using(hits_alias()).filter(pk=made.pk)
    mine = rows.filter(runner=made.runner, is_undone=False)
    if mine.filter(is_open=True, pieces=made.pieces).update(pieces=made.pieces + 1, **changes):
        return True
    if mine.exists():
        return False  # The answer to the COMMIT was lost, or another process had finished it.
    raise ImportRefused(
        f"Another process has continued or undone the import {made.name!r}. This one stops; "
        "nothing is counted twice."
    )


def find_missing(rows: Sequence[Row], strategy: str) -> list[Row]:
    """
    Return how many hits and visitors the tables lack of each row. A row that lacks none is left
    out.

    Costs no query with the strategy "add", else one per 500 counters, or two with visitors.
    """
    if strategy == "add":
        return [row for row in rows if row.hits or row.visitors]
    has_visitors = any(row.visitors for row in rows)
    days = sums.DayRange(min(row.day for row in rows), max(row.day for row in rows))
    hits: Counter[tuple[CounterKey, datetime.date]] = Counter()
    visitors: Counter[tuple[CounterKey, datetime.date]] = Counter()
    for keys in split([*dict.fromkeys(row.key for row in rows)], KEYS_AT_A_TIME):
        for key, by_day in sums.read_days_of_each(keys, days).items():
            hits.update({(key, day): n for day, n in by_day.items()})
        if has_visitors:
            of_days = daily_visitors.read_days(keys, days.first_day, days.last_day)
            for found, counted in of_days.items():
                visitors[found.key, found.day] += counted.visitors
    lacking = []
    for row in rows:
        more = row.hits - hits[row.key, row.day]
        if strategy == "larger":
            more = max(more, 0)
        # The visitors of Redis and of the tables are a number that never falls.
        more_visitors = max(row.visitors - visitors[row.key, row.day], 0)
        if more or more_visitors:
            lacking.append(Row(row.key, row.day, more, more_visitors))
    return lacking


def write_piece(made: Import, rows: Sequence[Row], *, slot: int) -> None:
    """
    Add rows to the slots and to the visitors, and note them as imported, in lock order.

    The caller opens the transaction. Costs a statement per thousand rows and table.
    """
    add_rows(rows, slot=slot)
    visitors = [
        (*row.key, row.day, _visitor_key(made, row.day), row.visitors)
        for row in rows
        if row.visitors
    ]
    sql.insert_or_add(DailyVisitors, (*DailyVisitors.KEY, "count"), visitors)
    imported = [(*row.key, row.day, made.pk, row.hits) for row in rows]
    sql.insert_or_add(ImportedHits, (*ImportedHits.KEY, "hits"), imported)


def add_rows(rows: Iterable[Row], *, slot: int) -> None:
    """Add the hits of rows to the slots. Costs two statements per thousand rows."""
    hits = [NewHits(row.key, row.day, row.hits) for row in rows if row.hits]
    slots.add_hits(hits, slot=slot)


def _visitor_key(made: Import, day: datetime.date) -> str:
    """
    Return an id that no visitor key has. With its day, the visitors of each day stay apart.

    It is short, since move_hits() adds a name to it.
    """
    return f"i-{day.isoformat()}-{made.pk}"


def finish_import(made: Import, refused: Mapping[RefusedKey, int]) -> None:
    """
    Note that all pieces are written, and add the refused hits. Costs a transaction.

    Raises ImportRefused if another process has continued the import, or undoes it.
    """
    noted = [(day.isoformat(), *names, number) for (day, *names), number in refused.items()]

    def finish(slot: int) -> None:
        if note(made, is_open=None, refused=noted, finished_at=timezone.now()):
            slots.add_refused(refused, slot=slot)

    transact(finish)


def begin_undo(made: Import) -> Import | None:
    """
    Note that an undo has begun, so that no process writes another piece. Costs two queries.

    Returns the import as it is now; None if it was undone meanwhile.
    """
    rows = Import.objects.using(hits_alias()).filter(pk=made.pk)
    transact(lambda slot: rows.update(is_undone=True, is_open=None))
    return rows.first()


def find_added(made: Import) -> list[models.QuerySet[Any, Any]]:
    """
    Return the rows of what an import has added: of hits, and of visitors if it had some.

    Neither table has an index for it, so a query reads the table.
    """
    using = hits_alias()
    found: list[models.QuerySet[Any, Any]] = [
        ImportedHits.objects.using(using).filter(import_id=made.pk)
    ]
    if any(visitors for *_, visitors in made.days):
        own = models.Q(visitor_key__endswith=f"-{made.pk}")
        moved = models.Q(visitor_key__contains=f"-{made.pk}+")
        visitors = DailyVisitors.objects.using(using)
        found.append(visitors.filter(own | moved, visitor_key__startswith="i-"))
    return found


def count_added(made: Import) -> int:
    """Return how many hits an import has added. Costs a query, which reads the table."""
    rows = ImportedHits.objects.using(hits_alias()).filter(import_id=made.pk)
    return int(rows.aggregate(sum=models.Sum("hits"))["sum"] or 0)


def take_piece(
    made: Import, added: models.QuerySet[Any, Any], after: int, size: int, *, slot: int
) -> list[Added]:
    """
    Take the next rows of ``added`` out of the tables, of those with ids above ``after``.

    Returns them. The caller opens the transaction. Costs an update, a read, a deletion, and for
    hits two statements per thousand rows.
    """
    using = hits_alias()
    # Two that undo the same import wait for each other here.
    Import.objects.using(using).filter(pk=made.pk).update(pieces=models.F("pieces") + 1)
    # Locked: move_hits() may be writing them under the key of another object.
    taken = [*added.filter(pk__gt=after).order_by("pk").select_for_update()[:size]]
    hits = [Row(key_of(row), row.day, -row.hits) for row in taken if isinstance(row, ImportedHits)]
    add_rows(hits, slot=slot)
    sql.delete_by_id(added.model, [row.pk for row in taken])
    return taken


def key_of(row: Added) -> CounterKey:
    """Return the counter of a row."""
    return CounterKey(row.content_type_id, row.object_id, row.counter)


def finish_undo(made: Import) -> None:
    """Take the refused hits back, and forget the import. Costs a transaction."""
    refused = {
        RefusedKey(datetime.date.fromisoformat(day), *names): -number
        for day, *names, number in made.refused
    }

    def finish(slot: int) -> None:
        rows = Import.objects.using(hits_alias()).filter(pk=made.pk)
        if rows._raw_delete(rows.db):
            slots.add_refused(refused, slot=slot)

    transact(finish)
