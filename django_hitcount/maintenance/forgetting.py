"""
Forget deleted objects: delete their counts, then their rows of DeletedObject.

A row is deleted only when nothing is left of its object, so a process may die at any time. Hits
from before the deletion are deleted in any case. Hits that a page records after the deletion are
deleted unless an object with the same key exists: it may have been created again, or moved.
"""

from __future__ import annotations

import datetime
import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.contrib.contenttypes.models import ContentType
from django.db import connections, models, router
from django.utils import timezone

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters.keys import CounterKey, InvalidKey, ObjectKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.row_deletion import delete_rows_of
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.slots import match_counters
from django_hitcount.db.tables import DeletedObject
from django_hitcount.db.transactions import DATABASE_ERRORS, is_in_transaction

KEPT_FOR = datetime.timedelta(hours=1)
"""How long to look for new counts of a deleted object. A page may still show it, or a replica or a
transaction may be late."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""The pause before the second look at an object that is gone. Each further one is twice as long."""

SHORTEST_SHARE = 0.1
"""The pause before the next look at an object that exists is at least this share of FIRST_PAUSE."""

DUE_PER_FLUSH = 5000
"""How many rows one flush looks at. So it stays short even after many objects were deleted."""

OBJECTS_AT_A_TIME = 500
"""Few enough for the 999 parameters of an old SQLite, and to keep few rows in memory."""

PATIENCE_SECONDS = 2.0
"""How long to retry a transaction that meets locks. After that, the rest is left to the next flush
or compaction. A page retries for a shorter time."""

Location = tuple[int, str]
"""A content type id, and a database that may have objects of this model."""

logger = logging.getLogger("django_hitcount")


def read_due() -> list[DeletedObject]:
    """
    Read the deleted objects that are due, those that are due for the longest time first.

    Then flush the buffer, and call forget_deleted() after that. Costs a query.
    """
    rows = DeletedObject.objects.using(hits_alias()).filter(due_at__lte=timezone.now())
    return [*rows.order_by("due_at")[:DUE_PER_FLUSH]]


def read_deleted(objects: Iterable[ObjectKey]) -> list[DeletedObject]:
    """Read the rows of deleted objects. Costs a query."""
    return [*DeletedObject.objects.using(hits_alias()).filter(match_counters(objects))]


def note_gone(objects: Iterable[ObjectKey]) -> None:
    """
    Note which deleted objects no database has any more. So if a flush finds one, it was created
    again, and the hits from before the deletion are not its own.

    Costs a query, one per model and database that the objects may be in, and an UPDATE. Raises the
    errors of the database of the counts.
    """
    deleted = [
        row
        for row in read_deleted(objects)
        # Where a transaction is open, the object may come back.
        if not any(map(is_in_transaction, _databases_of(row)))
    ]
    living = _find_living(deleted, set())
    gone = [row.pk for row in living if not living[row]]
    DeletedObject.objects.using(hits_alias()).filter(pk__in=gone).update(was_gone=True)


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
        ready = [
            row
            for row in chunk
            if CounterKey(*row.object_key, "").partition(partitions) not in unflushed
        ]
        living = _find_living(ready, unanswered)
        if later := [row.pk for row in chunk if row not in living]:
            # They come after rows that are due for longer in the next flush.
            rows = DeletedObject.objects.using(hits_alias())
            rows.filter(pk__in=later).update(due_at=timezone.now())
        if living:
            _forget_known(living, patience_seconds)


def _forget_known(living: Mapping[DeletedObject, bool], patience_seconds: float) -> None:
    """Forget the objects of rows, but for those that are living."""
    gone = [row for row in living if not living[row]]
    found = delete_rows_of({row.object_key for row in gone}, patience_seconds=patience_seconds)
    # Do this after deleting the rows: until then, a page may load an old total again.
    get_buffer().discard_objects(found | {row.object_key for row in gone if not row.forgotten_at})
    _finish_or_postpone(living, found)


def _finish_or_postpone(living: Mapping[DeletedObject, bool], found: set[ObjectKey]) -> None:
    """Delete the rows of objects of which nothing is left, and postpone the others."""
    now = timezone.now()
    rows = DeletedObject.objects.using(hits_alias())
    finished: list[int] = []
    kept: dict[tuple[bool, datetime.timedelta], list[int]] = defaultdict(list)
    for row, is_living in living.items():
        is_forgotten, age = row.forgotten_at is not None, now - row.deleted_at
        if is_living:  # If its counts were deleted, it exists again. If not, it was moved.
            is_finished = is_forgotten or age > KEPT_FOR
        else:
            is_finished = is_forgotten and age > KEPT_FOR and row.object_key not in found
        (finished if is_finished else kept[is_living, _round(age)]).append(row.pk)
    rows.filter(pk__in=finished).delete()
    for (is_living, pause), pks in kept.items():
        if is_living:  # It was moved, or its deletion is not committed yet.
            rows.filter(pk__in=pks).update(due_at=now + pause)
        else:
            due_at = now + max(FIRST_PAUSE, pause)
            rows.filter(pk__in=pks).update(forgotten_at=now, due_at=due_at)


def _round(pause: datetime.timedelta) -> datetime.timedelta:
    """Round down to FIRST_PAUSE times a power of two, so that many rows have the same pause."""
    shares = max(pause / FIRST_PAUSE, SHORTEST_SHARE)
    return FIRST_PAUSE * 2.0 ** math.floor(math.log2(shares))


def _find_living(
    deleted: Collection[DeletedObject], unanswered: set[Location]
) -> dict[DeletedObject, bool]:
    """
    Return whether the objects of rows exist. Leaves out rows of which no database could say so.

    Does not ask the locations in ``unanswered``, and adds those that do not answer now.

    Costs a query per model and database that an object may be in.
    """
    by_location: dict[Location, list[DeletedObject]] = defaultdict(list)
    for row in deleted:
        for database in _databases_of(row):
            by_location[row.content_type_id, database].append(row)
    living: set[DeletedObject] = set()
    unknown: set[DeletedObject] = set()
    for location, rows in by_location.items():
        existing = _find_existing(location, rows, unanswered)
        if existing is None:
            unknown |= {*rows}
        else:
            living |= {row for row in rows if row.object_id in existing}
    return {row: row in living for row in deleted if row not in unknown}


def _find_existing(
    location: Location, rows: Iterable[DeletedObject], unanswered: set[Location]
) -> set[str] | None:
    """Return the ids of those objects that exist; None if the database does not answer."""
    if location in unanswered:
        return None
    try:
        return _read_existing(*location, [row.object_id for row in rows])
    except DATABASE_ERRORS as exc:
        unanswered.add(location)
        logger.error(
            "Hits of deleted objects of content type %d are left to the next flush_hits or "
            "compact_hits, since database %r does not say whether the objects exist: %s",
            *location,
            exc,
        )
        return None


def _databases_of(row: DeletedObject) -> set[str]:
    """
    Return the databases that may have the object.

    If the row is in the database that the object was deleted from, both were committed together.
    If the object exists there, it was created again. The hits from before the deletion are not its
    own, so until they are deleted, that database is left out.
    """
    model = find_model(row.content_type_id)
    if not model or (row.was_gone and not row.forgotten_at):
        return set()
    databases = {row.database, row.saved_in, router.db_for_write(model)}
    if row.database == hits_alias() and not row.forgotten_at:
        databases.discard(row.database)
    return databases & {*connections}


def find_model(content_type_id: int) -> type[models.Model] | None:
    """Return a content type's model; None if its app is gone. Costs a query once per process."""
    content_types = ContentType.objects.db_manager(hits_alias())
    try:
        return content_types.get_for_id(content_type_id).model_class()
    except ContentType.DoesNotExist:
        return None


def _read_existing(content_type_id: int, database: str, object_ids: Iterable[str]) -> set[str]:
    """
    Return the ids of those objects that are in the database.

    Does not use the model's managers: some hide drafts, or objects that were deleted softly.
    """
    model = find_model(content_type_id)
    if not model:
        return set()
    try:
        rows = find_by_texts(model, object_ids, using=database)
    except InvalidKey:
        return set()  # The model has a primary key of another type now.
    with savepoint(database):
        return {convert_key(model, pk) for pk in rows.values_list("pk", flat=True)}
