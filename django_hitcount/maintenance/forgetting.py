"""
Forget deleted objects: delete their counts, then their rows of DeletedObject.

A row is deleted only when nothing is left of its object, so a process may die at any time. Hits
from before the deletion are deleted, unless the object was moved to another database. Hits that a
page records after the deletion are deleted unless an object with the same key exists. Objects of
``named_models`` exist again at once: they are counted before they have a row.
"""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from django.db import connections, models, router
from django.utils import timezone

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters import split
from django_hitcount.counters.keys import CounterKey, InvalidKey, ObjectKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts, named_models
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import find_model
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import (
    TABLES_OF_OBJECTS,
    DeletedObject,
    hits_alias,
)
from django_hitcount.db.taking import take_rows
from django_hitcount.db.transactions import (
    DATABASE_ERRORS,
    in_transaction,
    limit_waits,
)

KEPT_FOR = datetime.timedelta(hours=1)
"""How long to look for new counts of a deleted object. A page may still show it, or a replica or a
transaction may be late."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""The shortest pause before the next look at an object that is gone. A look comes after as long as
the deletion is ago, so each pause is twice as long."""

SHORTEST_PAUSE = datetime.timedelta(seconds=1)
"""The same for an object that exists: its deletion may be committed at any time."""

DUE_PER_FLUSH = 5000
"""How many rows one flush looks at. So it stays short even after many objects were deleted."""

OBJECTS_AT_A_TIME = 500
"""Objects, or rows of them, that a transaction forgets. Few enough for the 999 parameters of an old
SQLite, and to hold locks only briefly."""

LOCK_WAIT_SECONDS = 1.0
"""How long a statement waits for a lock before the transaction rolls back and is tried again."""

PATIENCE_SECONDS = 2.0
"""How long to retry a transaction that meets locks. After that, the rest is left to the next flush
or compaction. A page retries for a shorter time."""

Location = tuple[type[models.Model], str]
"""A model, and a database that may have objects of it."""

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
    return [*DeletedObject.objects.using(hits_alias()).filter(slots.match_counters(objects))]


def note_commits(objects: Iterable[ObjectKey], *, patience_seconds: float) -> None:
    """
    Note which objects are gone, after the COMMIT of a delete in another database than that of the
    counts. So if one is found there later, it was created again, and the old hits are not its own.

    Costs a query, one per model and database that the objects may be in, and a transaction with an
    UPDATE, which retries for ``patience_seconds`` when it meets locks. Raises the errors of the
    database of the counts.
    """
    # They may still be there: a savepoint that is rolled back by hand drops no callback.
    living = _find_living(read_deleted(objects), set())
    gone = [row.pk for row in living if not living[row]]
    rows = DeletedObject.objects.using(hits_alias()).filter(pk__in=gone)
    _write(partial(rows.update, is_committed=True), patience_seconds)


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
    So are objects that may be in a database that does not answer. Retries for ``patience_seconds``
    when it meets locks.

    Costs per 500 objects:

    - a query per table, and one per model and database that the objects may be in;
    - a transaction per 500 rows, and two with four statements that write ``deleted``;
    - three round trips.

    Raises BufferUnavailable and the errors of the database.
    """
    partitions, unanswered = get_config().partitions, set[Location]()
    for chunk in split(deleted, OBJECTS_AT_A_TIME):
        ready = [
            row
            for row in chunk
            if CounterKey(*row.object_key, "").partition(partitions) not in unflushed
        ]
        living = _find_living(ready, unanswered)
        if later := [row.pk for row in chunk if row not in living]:
            # They come after rows that are due for longer in the next flush.
            rows = DeletedObject.objects.using(hits_alias()).filter(pk__in=later)
            _write(partial(rows.update, due_at=timezone.now()), patience_seconds)
        gone = [row for row in living if not living[row]]
        found = delete_rows_of({row.object_key for row in gone}, patience_seconds=patience_seconds)
        fresh = {row.object_key for row in gone if not row.is_forgotten}
        if changed := found | fresh:
            # After deleting the rows: until then, a page may load an old total again.
            get_buffer().discard_objects(changed)
        if living:
            _finish_or_postpone(living, found, patience_seconds)


def _finish_or_postpone(
    living: Mapping[DeletedObject, bool], found: set[ObjectKey], patience_seconds: float
) -> None:
    """Delete the rows of objects of which nothing is left, and postpone the others."""
    now, finished = timezone.now(), []
    kept: dict[bool, list[DeletedObject]] = {True: [], False: []}
    for row, is_living in living.items():
        age = now - row.deleted_at
        if is_living:  # If its counts were deleted, it exists again. If not, it was moved.
            is_finished = row.is_forgotten or age > KEPT_FOR
        else:
            is_finished = row.is_forgotten and age > KEPT_FOR and row.object_key not in found
        if is_finished:
            finished.append(row.pk)
        else:
            row.due_at = now + max(SHORTEST_PAUSE if is_living else FIRST_PAUSE, age)
            row.is_forgotten = row.is_forgotten or not is_living
            kept[is_living].append(row)
    rows = DeletedObject.objects.using(hits_alias())

    def write() -> None:
        rows.filter(pk__in=finished).delete()
        rows.bulk_update(kept[True], ["due_at"])
        rows.bulk_update(kept[False], ["due_at", "is_forgotten"])

    _write(write, patience_seconds)


def _write(work: Callable[[], object], patience_seconds: float) -> None:
    """Run ``work`` in a transaction that waits for locks only as long as its caller does."""
    using = hits_alias()

    def write() -> None:
        with limit_waits(using, seconds=min(LOCK_WAIT_SECONDS, patience_seconds)):
            work()

    in_transaction(write, using=using, patience_seconds=patience_seconds, repeatable=True)


def _find_living(
    deleted: Sequence[DeletedObject], unanswered: set[Location]
) -> dict[DeletedObject, bool]:
    """
    Return whether the objects of rows exist. Leaves out rows of which no database could say so.
    Does not ask the locations in ``unanswered``, and adds those that do not answer now.

    Costs a query per model and database that an object may be in.
    """
    by_location: dict[Location, list[DeletedObject]] = defaultdict(list)
    for row in deleted:
        for location in _locations_of(row):
            by_location[location].append(row)
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
    """
    Return the ids of those objects that exist; None if the database does not answer.

    Does not use the model's managers: some hide drafts, or objects that were deleted softly.
    """
    if location in unanswered:
        return None
    model, database = location
    try:
        with savepoint(database):
            found = find_by_texts(model, [row.object_id for row in rows], using=database)
            existing = {convert_key(model, pk) for pk in found.values_list("pk", flat=True)}
    except InvalidKey:
        return set()  # The model has a primary key of another type now.
    except DATABASE_ERRORS as exc:
        unanswered.add(location)
        logger.error(
            "Hits of deleted objects of %s are left to the next flush_hits or compact_hits, since "
            "database %r does not say whether the objects exist: %s",
            model._meta.label,
            database,
            exc,
        )
        return None
    if model in named_models:
        existing |= {row.object_id for row in rows if row.is_forgotten}
    return existing


def _locations_of(row: DeletedObject) -> set[Location]:
    """
    Return where the object may be.

    Until the old hits are deleted, that is not the database of a delete that is committed. If the
    object exists there, it was created again, and those hits are not its own.
    """
    model = find_model(row.content_type_id)
    if not model:
        return set()
    databases = {row.database, row.saved_in, router.db_for_write(model)}
    if row.is_committed and not row.is_forgotten:
        databases.discard(row.database)
    return {(model, database) for database in databases & {*connections}}


def delete_rows_of(objects: Collection[ObjectKey], *, patience_seconds: float) -> set[ObjectKey]:
    """
    Delete the rows of objects from all tables. Returns the objects that had any.

    A table is done when a read without a lock finds nothing. A read with a lock would prove
    nothing: if it waits for a compaction, it does not see the row that the compaction inserts. A
    read without a lock sees the old rows until the compaction commits, and then the new one.

    Costs a query per table, and a query and a transaction of two statements per 500 rows. Raises
    OperationalError if a piece meets locks for longer than ``patience_seconds``.
    """
    found = set[ObjectKey]()
    for model in TABLES_OF_OBJECTS if objects else ():
        rows = model._default_manager.using(hits_alias()).filter(slots.match_counters(objects))
        columns = rows.values_list("pk", "content_type_id", "object_id")
        while some := [*columns[:OBJECTS_AT_A_TIME]]:
            _write(partial(take_rows, model, [pk for pk, *_ in some]), patience_seconds)
            found |= {(content_type_id, object_id) for _, content_type_id, object_id in some}
    return found
