"""
Forget deleted objects: work off the rows of DeletedObject.

A row goes only when nothing is left of its object, so it does not matter who dies when. Two
things are told apart: the hits from before the object was deleted, which go in any case, and
those that a page records afterwards, which go for as long as nobody has made the object anew.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter

from django.contrib.contenttypes.models import ContentType
from django.db import connections, models, router
from django.utils import timezone

from django_hitcount import locks
from django_hitcount.buffers import get_buffer
from django_hitcount.counters import hits_alias
from django_hitcount.exceptions import InvalidKey
from django_hitcount.primary_keys import text_of_key, with_texts
from django_hitcount.savepoints import savepoint
from django_hitcount.tables import (
    CounterRow,
    DailyHitSlot,
    DailyVisitors,
    DeletedObject,
    HitSlot,
    SeenVisitor,
    SlotRow,
)
from django_hitcount.transactions import in_transaction, take_write_lock

KEPT_FOR = datetime.timedelta(hours=1)
"""How long a page may still show a deleted object, or a replica or transaction lag behind."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""Pause before the second look at a deleted object; each further one is twice as long."""

DUE_PER_FLUSH = 5000

OBJECTS_AT_A_TIME = 500

ROWS_PER_TRANSACTION = 500

PATIENCE_SECONDS = 2.0
"""How long the deletion of rows is tried again for when it meets locks: a page may wait for it."""

LOCK_WAIT_SECONDS = 1.0
"""How long one statement waits for a lock."""

TABLES: tuple[type[CounterRow], ...] = (HitSlot, DailyHitSlot, SeenVisitor, DailyVisitors)
"""SeenVisitor before DailyVisitors: a fold turns rows of the first into rows of the second."""

ObjectPair = tuple[int, str]
"""Content type id and object id."""


def due() -> list[DeletedObject]:
    """
    Deleted objects that are to be looked at now; the longest due first. Costs a query.

    Flush what the buffer holds between this and work_off().
    """
    rows = DeletedObject.objects.using(hits_alias()).filter(due_at__lte=timezone.now())
    return [*rows.order_by("due_at")[:DUE_PER_FLUSH]]


def noted(objects: Iterable[ObjectPair]) -> Iterator[list[DeletedObject]]:
    """The rows of objects, if their deletion was not undone. Costs a query per 500."""
    rows = DeletedObject.objects.using(hits_alias())
    iterator = iter(objects)
    while chunk := [*islice(iterator, OBJECTS_AT_A_TIME)]:
        yield [*rows.filter(_any_of(chunk))]


def work_off(deleted: Sequence[DeletedObject], *, is_flushed: bool) -> None:
    """
    Forget what there is of deleted objects, and the rows that say so once nothing is left.

    ``is_flushed`` says whether all hits that the buffer held when these rows were read are in
    the tables by now. If not, this goes as far as it can, and all is done once more later.

    Costs, per 500 objects, a query per table, one per model and database that is looked into,
    a transaction per 500 rows, two round trips, and three queries.

    Raises BufferUnavailable, or what the database raises.
    """
    for start in range(0, len(deleted), OBJECTS_AT_A_TIME):
        _work_off(deleted[start : start + OBJECTS_AT_A_TIME], is_flushed)


def _work_off(deleted: Sequence[DeletedObject], is_flushed: bool) -> None:
    living = _living(deleted)
    gone = [row for row in deleted if row not in living]
    found = _delete_rows_of({row.pair for row in gone})
    # After the tables: a total that is loaded meanwhile may be from before.
    get_buffer().forget(found | {row.pair for row in gone if not row.swept_at})
    if is_flushed:
        _postpone(deleted, living, found)


def _postpone(
    deleted: Sequence[DeletedObject], living: set[DeletedObject], found: set[ObjectPair]
) -> None:
    """Drop the rows that nothing is left of, and look at the others again after a while."""
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


def _is_clean(row: DeletedObject, found: set[ObjectPair]) -> bool:
    return row.swept_at is not None and row.pair not in found


def _living(deleted: Iterable[DeletedObject]) -> set[DeletedObject]:
    """Those whose object is there. Costs a query per model and database that it may be in."""
    by_table: dict[tuple[int, str], list[DeletedObject]] = defaultdict(list)
    for row in deleted:
        for database in _databases_of(row):
            by_table[row.content_type_id, database].append(row)
    living: set[DeletedObject] = set()
    for (content_type_id, database), rows in by_table.items():
        there = _existing(content_type_id, database, [row.object_id for row in rows])
        living |= {row for row in rows if row.object_id in there}
    return living


def _databases_of(row: DeletedObject) -> set[str]:
    """
    The databases that the object may live in.

    A row in the database that the object was deleted from was committed together with that:
    who is there now was made anew, and the hits from before are not theirs.
    """
    model = model_of(row.content_type_id)
    if not model:
        return set()
    databases = {row.database, row.saved_in, router.db_for_write(model)}
    if row.database == hits_alias() and not row.swept_at:
        databases.discard(row.database)
    return databases & {*connections}


def model_of(content_type_id: int) -> type[models.Model] | None:
    """The model with a content type; None if its app is gone."""
    content_types = ContentType.objects.db_manager(hits_alias())
    try:
        return content_types.get_for_id(content_type_id).model_class()
    except ContentType.DoesNotExist:
        return None


def _existing(content_type_id: int, database: str, object_ids: Iterable[str]) -> set[str]:
    """
    Those of the objects that the database holds.

    Past all managers: one that hides drafts or what was deleted softly would have it gone.
    """
    model = model_of(content_type_id)
    if not model:
        return set()
    try:
        rows = with_texts(model, object_ids, using=database)
    except InvalidKey:
        return set()  # The model has got another key since.
    with savepoint(database):
        return {text_of_key(model, pk) for pk in rows.values_list("pk", flat=True)}


def _delete_rows_of(objects: Collection[ObjectPair]) -> set[ObjectPair]:
    """
    Delete the rows of objects from all tables; returns the objects that had any.

    A table is done with once a read without a lock finds nothing. One that waits for a lock
    does not see what the other has written: a compaction folds rows into one that is new.
    But as long as that is not committed, everybody sees the rows that are folded.
    """
    using = hits_alias()
    found: set[ObjectPair] = set()
    for model in TABLES if objects else ():
        rows = model._default_manager.using(using).filter(_any_of(objects))
        columns = rows.values_list("pk", "content_type_id", "object_id")
        while some := [*columns[:ROWS_PER_TRANSACTION]]:
            delete = partial(_delete, model, [pk for pk, *_ in some], using)
            in_transaction(delete, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)
            found |= {(content_type_id, object_id) for _, content_type_id, object_id in some}
    return found


def _delete(model: type[CounterRow], pks: list[int], using: str) -> None:
    """Delete rows, locked in the order of all writers."""
    rows = model._default_manager.using(using).filter(pk__in=pks)
    take_write_lock(using)
    order = (*model.KEY, "slot" if issubclass(model, SlotRow) else "pk")
    with locks.limited_waits(using, seconds=LOCK_WAIT_SECONDS):
        locked = [*rows.order_by(*order).select_for_update().values_list("pk", flat=True)]
        rows.filter(pk__in=locked)._raw_delete(using)


def _any_of(objects: Iterable[ObjectPair]) -> models.Q:
    condition = models.Q(pk__in=[])
    for content_type_id, pairs in groupby(sorted(objects), key=itemgetter(0)):
        condition |= models.Q(
            content_type_id=content_type_id, object_id__in=[object_id for _, object_id in pairs]
        )
    return condition
