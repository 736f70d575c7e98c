"""
Forget deleted objects: delete their counts, then their rows of DeletedObject.

A row is deleted only when nothing is left of its object, so a process may die at any time. Hits
from before the deletion are deleted in any case. Hits that a page records after the deletion are
deleted unless an object with the same key exists again.
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
"""How long to look for new counts of a deleted object. A page may still show it, or a replica or a
transaction may be late."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""The pause before the second look at a deleted object. Each further pause is twice as long."""

DUE_PER_FLUSH = 5000
"""How many rows one flush looks at. So it stays short even after many objects were deleted."""

OBJECTS_AT_A_TIME = 500
"""Few enough for the 999 parameters of an old SQLite, and to keep few rows in memory."""

PATIENCE_SECONDS = 2.0
"""How long a flush retries a transaction that meets locks. After that, it leaves the rest to the
next flush. A page retries for a shorter time."""


def read_due() -> list[DeletedObject]:
    """
    Read the deleted objects that are due, those that are due for the longest time first.

    Then flush the buffer, and call forget_deleted() after that. Costs a query.
    """
    rows = DeletedObject.objects.using(hits_alias()).filter(due_at__lte=timezone.now())
    return [*rows.order_by("due_at")[:DUE_PER_FLUSH]]


def read_deleted(objects: Iterable[ObjectKey]) -> Iterator[list[DeletedObject]]:
    """Yield the rows of deleted objects, 500 at a time. Costs a query for each 500 objects."""
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
    Delete the counts of deleted objects, and each row of ``deleted`` when nothing is left.

    The hits that the buffer held when these rows were read must be in the tables now.
    ``unflushed`` has the partitions where they are not: their objects are left to the next flush.
    So are objects that may be in a database that does not answer.

    Retries for ``patience_seconds`` when it meets locks.

    Costs per 500 objects:

    - four queries, one per table, and one per model and database that the objects may be in;
    - a transaction per 500 rows;
    - two round trips.

    Raises BufferUnavailable and the errors of the database.
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
    """Make rows due now. They come after rows that are due for longer in the next flush."""
    if deleted:
        rows = DeletedObject.objects.using(hits_alias())
        rows.filter(pk__in=[row.pk for row in deleted]).update(due_at=timezone.now())


def _forget_known(known: Sequence[tuple[DeletedObject, bool]], patience_seconds: float) -> None:
    """Forget the objects of rows. With each row comes whether its object exists again."""
    deleted = [row for row, _ in known]
    living = {row for row, is_living in known if is_living}
    gone = [row for row in deleted if row not in living]
    found = delete_rows_of({row.object_key for row in gone}, patience_seconds=patience_seconds)
    # Do this after deleting the rows: until then, a page may load an old total again.
    get_buffer().discard_objects(found | {row.object_key for row in gone if not row.swept_at})
    if deleted:
        _finish_or_postpone(deleted, living, found)


def _finish_or_postpone(
    deleted: Sequence[DeletedObject], living: set[DeletedObject], found: set[ObjectKey]
) -> None:
    """Delete the rows of objects of which nothing is left, and postpone the others."""
    now = timezone.now()
    rows = DeletedObject.objects.using(hits_alias())
    finished = {
        row
        for row in deleted
        if (row.swept_at and row in living)  # Its counts were deleted, and it exists again.
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
