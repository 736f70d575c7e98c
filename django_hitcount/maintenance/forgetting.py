"""
Forget deleted objects: delete their counts, then their rows of DeletedObject.

A row goes only when nothing is left of its object, so a process may die at any time. Hits from
before the deletion go in any case. Hits that a page records afterwards go unless somebody has
made the object anew.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from django.utils import timezone

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters.keys import CounterKey, ObjectKey
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.row_deletion import delete_rows_of, match_objects
from django_hitcount.db.tables import DeletedObject
from django_hitcount.maintenance.living_objects import Location, find_living

KEPT_FOR = datetime.timedelta(hours=1)
"""How long a page may still show a deleted object, or a replica or transaction lag behind."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""Pause before the second look at a deleted object; each further one is twice as long."""

DUE_PER_FLUSH = 5000
"""Rows that one flush looks at, so that a large bulk delete does not make it late for the next."""

OBJECTS_AT_A_TIME = 500
"""Few enough for the 999 parameters of an old SQLite, and to keep few rows in memory."""

PATIENCE_SECONDS = 2.0
"""How long a transaction that meets locks is tried again. A flush has other work to do, and the
next one goes on; a page gives a shorter time."""


def read_due() -> list[DeletedObject]:
    """
    Read the deleted objects that are due, the longest due first. Costs a query.

    Flush what the buffer holds between this and forget_deleted().
    """
    rows = DeletedObject.objects.using(hits_alias()).filter(due_at__lte=timezone.now())
    return [*rows.order_by("due_at")[:DUE_PER_FLUSH]]


def read_deleted(objects: Iterable[ObjectKey]) -> Iterator[list[DeletedObject]]:
    """Read the rows of objects whose deletion was not undone. Costs a query per 500."""
    rows = DeletedObject.objects.using(hits_alias())
    iterator = iter(objects)
    while chunk := [*islice(iterator, OBJECTS_AT_A_TIME)]:
        yield [*rows.filter(match_objects(chunk))]


def forget_deleted(
    deleted: Sequence[DeletedObject],
    *,
    unflushed: Collection[int] = (),
    patience_seconds: float = PATIENCE_SECONDS,
) -> None:
    """
    Delete the counts of deleted objects, and each row of ``deleted`` once nothing is left.

    Call it when all hits that the buffer held when these rows were read are in the tables.
    Partitions where that failed are ``unflushed``: their objects wait for the next flush. So do
    objects that may be in a database that does not answer.

    Tries again for ``patience_seconds`` when it meets locks. Costs, per 500 objects, a query
    per table, one per model and database that is looked into, a transaction per 500 rows, two
    round trips, and four queries.

    Raises BufferUnavailable, or what the database raises.
    """
    partitions = get_config().partitions
    unanswered: set[Location] = set()
    for start in range(0, len(deleted), OBJECTS_AT_A_TIME):
        chunk = deleted[start : start + OBJECTS_AT_A_TIME]
        ready = [row for row in chunk if _partition_of(row, partitions) not in unflushed]
        known = [*find_living(ready, unanswered)]
        _leave_to_next_flush({*chunk} - {row for row, _ in known})
        _forget_known(known, patience_seconds)


def _partition_of(row: DeletedObject, partitions: int) -> int:
    return CounterKey(*row.object_key, "").partition(partitions)


def _leave_to_next_flush(deleted: Collection[DeletedObject]) -> None:
    """Make rows due now, after those that have waited as long: a flush looks at a few only."""
    if deleted:
        rows = DeletedObject.objects.using(hits_alias())
        rows.filter(pk__in=[row.pk for row in deleted]).update(due_at=timezone.now())


def _forget_known(known: Sequence[tuple[DeletedObject, bool]], patience_seconds: float) -> None:
    """Forget the objects of rows, each given with whether its object exists."""
    deleted = [row for row, _ in known]
    living = {row for row, is_living in known if is_living}
    gone = [row for row in deleted if row not in living]
    found = delete_rows_of({row.object_key for row in gone}, patience_seconds=patience_seconds)
    # After the tables: a total that is loaded meanwhile may be from before.
    get_buffer().discard_objects(found | {row.object_key for row in gone if not row.swept_at})
    if deleted:
        _finish_or_postpone(deleted, living, found)


def _finish_or_postpone(
    deleted: Sequence[DeletedObject], living: set[DeletedObject], found: set[ObjectKey]
) -> None:
    """Delete the rows that nothing is left of, and look at the others again after a while."""
    now = timezone.now()
    rows = DeletedObject.objects.using(hits_alias())
    finished = {
        row
        for row in deleted
        if (row.swept_at and row in living)  # It was made anew.
        or (now - row.deleted_at > KEPT_FOR and (row in living or _is_clean(row, found)))
    }
    pause = max(FIRST_PAUSE, now - max(row.deleted_at for row in deleted))
    kept = [row for row in deleted if row not in finished]
    swept = [row.pk for row in kept if row not in living]
    rows.filter(pk__in=[row.pk for row in finished]).delete()
    rows.filter(pk__in=swept).update(swept_at=now)
    rows.filter(pk__in=[row.pk for row in kept]).update(due_at=now + pause)


def _is_clean(row: DeletedObject, found: set[ObjectKey]) -> bool:
    return row.swept_at is not None and row.object_key not in found
