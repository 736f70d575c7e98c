"""
Forget deleted objects: work off the rows of DeletedObject.

A row goes only when nothing is left of its object, so it does not matter who dies when. Two
things are told apart: the hits from before the object was deleted, which go in any case, and
those that a page records afterwards, which go for as long as nobody has made the object anew.
"""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter

from django.contrib.contenttypes.models import ContentType
from django.db import connections, models, router
from django.utils import timezone

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db import locks
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import (
    CounterRow,
    DailyHitSlot,
    DailyVisitors,
    DeletedObject,
    HitSlot,
    SeenVisitor,
    SlotRow,
)
from django_hitcount.db.transactions import DATABASE_ERRORS, in_transaction, take_write_lock
from django_hitcount.exceptions import InvalidKey

KEPT_FOR = datetime.timedelta(hours=1)
"""How long a page may still show a deleted object, or a replica or transaction lag behind."""

FIRST_PAUSE = datetime.timedelta(seconds=10)
"""Pause before the second look at a deleted object; each further one is twice as long."""

DUE_PER_FLUSH = 5000

OBJECTS_AT_A_TIME = 500

ROWS_PER_TRANSACTION = 500

PATIENCE_SECONDS = 2.0
"""How long the deletion of rows is tried again for when it meets locks; a page gives its own."""

LOCK_WAIT_SECONDS = 1.0
"""How long one statement waits for a lock."""

TABLES: tuple[type[CounterRow], ...] = (HitSlot, DailyHitSlot, SeenVisitor, DailyVisitors)
"""SeenVisitor before DailyVisitors: a fold turns rows of the first into rows of the second."""

ObjectKey = tuple[int, str]
"""Content type id and object id."""

Place = tuple[int, str]
"""Content type id, and a database that its objects may be in."""

logger = logging.getLogger("django_hitcount")


def read_due() -> list[DeletedObject]:
    """
    Deleted objects that are to be looked at now; the longest due first. Costs a query.

    Flush what the buffer holds between this and forget_deleted().
    """
    rows = DeletedObject.objects.using(hits_alias()).filter(due_at__lte=timezone.now())
    return [*rows.order_by("due_at")[:DUE_PER_FLUSH]]


def read_deleted(objects: Iterable[ObjectKey]) -> Iterator[list[DeletedObject]]:
    """The rows of objects, if their deletion was not undone. Costs a query per 500."""
    rows = DeletedObject.objects.using(hits_alias())
    iterator = iter(objects)
    while chunk := [*islice(iterator, OBJECTS_AT_A_TIME)]:
        yield [*rows.filter(_any_of(chunk))]


def forget_deleted(
    deleted: Sequence[DeletedObject],
    *,
    unflushed: Collection[int] = (),
    patience_seconds: float = PATIENCE_SECONDS,
) -> None:
    """
    Forget what there is of deleted objects, and the rows that say so once nothing is left.

    All hits that the buffer held when these rows were read are to be in the tables by now, but
    for those in ``unflushed`` partitions, whose objects are left to the next flush. So are those
    that are to be looked for in a database that does not answer.

    Tries again for ``patience_seconds`` when it meets locks. Costs, per 500 objects, a query
    per table, one per model and database that is looked into, a transaction per 500 rows, two
    round trips, and four queries.

    Raises BufferUnavailable, or what the database raises.
    """
    partitions = get_config().partitions
    unanswered: set[Place] = set()
    for start in range(0, len(deleted), OBJECTS_AT_A_TIME):
        chunk = deleted[start : start + OBJECTS_AT_A_TIME]
        ready = [row for row in chunk if _partition_of(row, partitions) not in unflushed]
        known = [*_answered(ready, unanswered)]
        _leave({*chunk} - {row for row, _ in known})
        _forget_known(known, patience_seconds)


def _partition_of(row: DeletedObject, partitions: int) -> int:
    return CounterKey(*row.pair, "").partition(partitions)


def _leave(deleted: Collection[DeletedObject]) -> None:
    """Leave rows to the next flush, after those that have waited as long: it looks at few."""
    if deleted:
        rows = DeletedObject.objects.using(hits_alias())
        rows.filter(pk__in=[row.pk for row in deleted]).update(due_at=timezone.now())


def _forget_known(known: Sequence[tuple[DeletedObject, bool]], patience_seconds: float) -> None:
    """Work off rows of which it is known whether the object is there."""
    deleted = [row for row, _ in known]
    living = {row for row, is_living in known if is_living}
    gone = [row for row in deleted if row not in living]
    found = _delete_rows_of({row.pair for row in gone}, patience_seconds)
    # After the tables: a total that is loaded meanwhile may be from before.
    get_buffer().forget(found | {row.pair for row in gone if not row.swept_at})
    if deleted:
        _postpone(deleted, living, found)


def _postpone(
    deleted: Sequence[DeletedObject], living: set[DeletedObject], found: set[ObjectKey]
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


def _is_clean(row: DeletedObject, found: set[ObjectKey]) -> bool:
    return row.swept_at is not None and row.pair not in found


def _answered(
    deleted: Sequence[DeletedObject], unanswered: set[Place]
) -> Iterator[tuple[DeletedObject, bool]]:
    """
    Rows with whether their object is there, without those of which nobody can tell.

    What is ``unanswered`` is added to, and not asked again. Costs a query per model and
    database that an object may be in.
    """
    by_place: dict[Place, list[DeletedObject]] = defaultdict(list)
    for row in deleted:
        for database in _databases_of(row):
            by_place[row.content_type_id, database].append(row)
    living: set[DeletedObject] = set()
    unknown: set[DeletedObject] = set()
    for place, rows in by_place.items():
        there = _existing_in(place, rows, unanswered)
        living |= {row for row in rows if there is not None and row.object_id in there}
        unknown |= {*rows} if there is None else set()
    return ((row, row in living) for row in deleted if row not in unknown)


def _existing_in(
    place: Place, rows: Iterable[DeletedObject], unanswered: set[Place]
) -> set[str] | None:
    """Ids of those objects that are there; None if the database does not say."""
    if place in unanswered:
        return None
    try:
        return _existing(*place, [row.object_id for row in rows])
    except DATABASE_ERRORS as exc:
        unanswered.add(place)
        logger.error(
            "Hits of deleted objects of content type %d are left to the next flush_hits or "
            "compact_hits, since database %r does not say whether they are there: %s",
            *place,
            exc,
        )
        return None


def _databases_of(row: DeletedObject) -> set[str]:
    """
    The databases that the object may live in.

    A row in the database that the object was deleted from was committed together with that:
    who is there now was made anew, and the hits from before are not theirs.
    """
    model = find_model(row.content_type_id)
    if not model:
        return set()
    databases = {row.database, row.saved_in, router.db_for_write(model)}
    if row.database == hits_alias() and not row.swept_at:
        databases.discard(row.database)
    return databases & {*connections}


def find_model(content_type_id: int) -> type[models.Model] | None:
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
    model = find_model(content_type_id)
    if not model:
        return set()
    try:
        rows = find_by_texts(model, object_ids, using=database)
    except InvalidKey:
        return set()  # The model has got another key since.
    with savepoint(database):
        return {convert_key(model, pk) for pk in rows.values_list("pk", flat=True)}


def _delete_rows_of(objects: Collection[ObjectKey], patience_seconds: float) -> set[ObjectKey]:
    """
    Delete the rows of objects from all tables; returns the objects that had any.

    A table is done with once a read without a lock finds nothing. One that waits for a lock
    does not see what the other has written: a compaction folds rows into one that is new.
    But as long as that is not committed, everybody sees the rows that are folded.
    """
    using = hits_alias()
    lock_wait_seconds = min(LOCK_WAIT_SECONDS, patience_seconds)
    found: set[ObjectKey] = set()
    for model in TABLES if objects else ():
        rows = model._default_manager.using(using).filter(_any_of(objects))
        columns = rows.values_list("pk", "content_type_id", "object_id")
        while some := [*columns[:ROWS_PER_TRANSACTION]]:
            delete = partial(_delete, model, [pk for pk, *_ in some], using, lock_wait_seconds)
            in_transaction(delete, using=using, patience_seconds=patience_seconds, repeatable=True)
            found |= {(content_type_id, object_id) for _, content_type_id, object_id in some}
    return found


def _delete(model: type[CounterRow], pks: list[int], using: str, lock_wait_seconds: float) -> None:
    """Delete rows, locked in the order of all writers."""
    rows = model._default_manager.using(using).filter(pk__in=pks)
    take_write_lock(using)
    order = (*model.KEY, "slot" if issubclass(model, SlotRow) else "pk")
    with locks.limit_waits(using, seconds=lock_wait_seconds):
        locked = [*rows.order_by(*order).select_for_update().values_list("pk", flat=True)]
        rows.filter(pk__in=locked)._raw_delete(using)


def _any_of(objects: Iterable[ObjectKey]) -> models.Q:
    condition = models.Q(pk__in=[])
    for content_type_id, pairs in groupby(sorted(objects), key=itemgetter(0)):
        condition |= models.Q(
            content_type_id=content_type_id, object_id__in=[object_id for _, object_id in pairs]
        )
    return condition
