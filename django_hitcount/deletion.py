"""
Forget deleted objects: delete their counts, in the tables and in the buffer.

1. The transaction that deletes objects writes a DeletedObject row for each: _Deletion.
2. With Redis, the next flush forgets the objects of these rows: forgetting.forget_deleted().
3. Without Redis, the process that deletes them calls it after the COMMIT: forget_now(). What that
   leaves, compact_hits does.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import class_prepared, post_delete, pre_delete

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import list_values, primary_keys
from django_hitcount.counters.keys import InvalidKey, ObjectKey
from django_hitcount.counters.primary_keys import (
    counted_model,
    deleted_object_id,
)
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.savepoints import run_after_commit, savepoint
from django_hitcount.db.tables import DeletedObject, hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS, take_write_lock
from django_hitcount.exceptions import UnsavedObject
from django_hitcount.maintenance import forgetting
from django_hitcount.twins import async_twin

__all__ = ["aforget_hits", "forget_hits", "register"]

OBJECTS_AT_A_TIME = 500
"""Deleted objects in one INSERT, and that a page forgets at most: one query per table finds them,
and no database limits the parameters of a statement to as few."""

PAGE_PATIENCE_SECONDS = 0.5
"""How long a page retries when it meets locks. A person waits for it."""

logger = logging.getLogger("django_hitcount")


def register(model: type[models.Model]) -> None:
    """
    Delete the hits of objects of ``model`` when the objects are deleted.

    HitCountMixin does this itself. For other models, call it in AppConfig.ready().

    A child model counts as its parent, and a proxy as its model. So registers that parent or model,
    with all its proxies. A child that is deleted with ``keep_parents=True`` leaves its counts to
    the parent. When a queryset deletes objects of a registered model, Django reads them first.
    """
    counted = counted_model(model)
    primary_keys.registered.add(counted)
    for sender in (counted, *_proxies_of(counted)):
        _connect_sender(sender)


def _connect_sender(sender: type[models.Model]) -> None:
    pre_delete.connect(_on_pre_delete, sender=sender, dispatch_uid="django_hitcount.deletion")
    post_delete.connect(_on_post_delete, sender=sender, dispatch_uid="django_hitcount.deletion")


def _proxies_of(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """Yield all proxies of a model. Deleting through a proxy only sends the proxy's signal."""
    for subclass in model.__subclasses__():
        if subclass._meta.proxy:
            yield subclass
            yield from _proxies_of(subclass)


def _on_class_prepared(sender: type[models.Model], **kwargs: Any) -> None:
    """Connect a proxy class that is defined after its model was registered."""
    if sender._meta.proxy and sender._meta.concrete_model in primary_keys.registered:
        _connect_sender(sender)


class_prepared.connect(_on_class_prepared, dispatch_uid="django_hitcount.deletion")


class _Deletion:
    """
    The objects that a transaction deletes. After the COMMIT, Django calls forget().

    Django sends all pre_delete signals before it deletes anything, and then a post_delete signal
    for each object. The pre_delete signals collect the expected objects. The first post_delete
    signal writes the rows of all of them: one INSERT instead of many.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self._callback_index = len(connections[using].run_on_commit)
        self._expected: dict[ObjectKey, str] = {}
        """Objects that have no row yet, each with the database that it was last read from."""

        self._objects: dict[ObjectKey, None] = {}
        """All objects with a row, in order."""

    def forget(self) -> None:
        """Forget them: see forget_now()."""
        if self._objects:
            work = partial(forget_now, [*self._objects], self.using)
            run_after_commit(work, databases=[hits_alias()])

    def is_pending(self) -> bool:
        """Return whether the COMMIT will call forget(), and the savepoints are still the same."""
        connection = connections[self.using]
        callbacks = connection.run_on_commit[self._callback_index : self._callback_index + 1]
        savepoints = {*connection.savepoint_ids}
        return [(ids, callback) for ids, callback, *_ in callbacks] == [(savepoints, self.forget)]

    def expect(self, key: ObjectKey, instance: models.Model) -> None:
        """Remember an object that is about to be deleted."""
        self._expected[key] = instance._state.db or ""

    def write(self, key: ObjectKey, instance: models.Model) -> None:
        """
        Write the rows of this object and of all expected ones, unless they are written.

        In the transaction of the delete, if the counts are in the same database: an error here also
        stops the delete.
        """
        if key not in self._objects:
            self.expect(key, instance)
        if self._expected:
            counts = hits_alias()
            apart = savepoint(counts) if counts != self.using else nullcontext()
            with _log_if_counts_are_away(self.using), apart:
                _write_rows(self._expected, self.using)
            self._objects |= dict.fromkeys(self._expected)
            self._expected.clear()


_last_deletions: WeakKeyDictionary[BaseDatabaseWrapper, _Deletion] = WeakKeyDictionary()
"""The last deletion of each connection."""


def _on_pre_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    if connections[using].in_atomic_block:
        deletion = _get_deletion(using)
        if key := _find_object_key(instance, using):
            deletion.expect(key, instance)


def _on_post_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    if not connections[using].in_atomic_block:  # Somebody has sent the signal by hand.
        with transaction.atomic(using=using):
            _on_post_delete(instance, using)
    elif key := _find_object_key(instance, using):
        _get_deletion(using).write(key, instance)


def _get_deletion(using: str) -> _Deletion:
    """
    Return the _Deletion of the open transaction. Creates it if necessary.

    All objects that are deleted within the same savepoints share one, and so one callback. Django
    drops the callback in a rollback.
    """
    connection = connections[using]
    deletion = _last_deletions.get(connection)
    if deletion is None or not deletion.is_pending():
        if using == hits_alias():
            take_write_lock(using)  # Finding the key of an object may read a content type.
        deletion = _last_deletions[connection] = _Deletion(using)
        transaction.on_commit(deletion.forget, using=using, robust=True)
    return deletion


def _find_object_key(instance: models.Model, using: str) -> ObjectKey | None:
    """Return the key of a deleted object; None if its hits cannot have been counted."""
    with suppress(InvalidKey), _log_if_counts_are_away(using):
        return content_type_id_of(instance), deleted_object_id(instance)
    return None


def _write_rows(objects: Mapping[ObjectKey, str], using: str) -> None:
    """
    Write the rows of objects that are deleted from a database; see DeletedObject.

    ``objects`` has the database that each was last read from.
    """
    rows = [
        DeletedObject(
            content_type_id=content_type_id,
            object_id=object_id,
            database=using,
            saved_in=saved_in,
            is_committed=using == hits_alias(),
        )
        for (content_type_id, object_id), saved_in in objects.items()
    ]
    DeletedObject.objects.using(hits_alias()).bulk_create(rows, batch_size=OBJECTS_AT_A_TIME)


@contextmanager
def _log_if_counts_are_away(using: str) -> Iterator[None]:
    """Log database errors, so that the delete continues, if the counts have their own database."""
    try:
        yield
    except DATABASE_ERRORS as exc:
        if using == hits_alias():
            raise
        logger.error("Hits of deleted objects may not be forgotten: %s", exc)


def forget_hits(obj: models.Model | Iterable[models.Model]) -> None:
    """
    Delete the hits of an object, or of each of several ones.

    Django's delete() does this for models with HitCountMixin and for registered ones. Call it for
    objects that were deleted in another way, such as by SQL: only the primary key is needed, as in
    ``forget_hits(Article(pk=5))``. With Redis, the next flush_hits does it. Without Redis, it is
    done at once, or after the COMMIT if a transaction is open; compact_hits does what would take
    too long for a page. If an object is created with this key before that, it shows the old hits,
    and its new ones are deleted with them.

    Costs an INSERT per 500 objects. Without Redis, also costs two queries or more per table.

    Raises InvalidArgument if an object has no primary key, and the database's error if the INSERT
    fails.
    """
    by_database: dict[str, dict[ObjectKey, str]] = defaultdict(dict)
    for one in list_values(obj):
        if not isinstance(one, models.Model) or one.pk is None:
            raise UnsavedObject(f"Invalid object: {one!r}. Pass an object with its primary key.")
        key = content_type_id_of(one), deleted_object_id(one)
        by_database[router.db_for_write(counted_model(one._meta.model))][key] = ""
    for database, objects in by_database.items():
        _write_rows(objects, database)
        work = partial(forget_now, [*objects], database)
        run_after_commit(work, databases={hits_alias(), database})


def forget_now(objects: Sequence[ObjectKey], database: str) -> None:
    """
    Without Redis, forget the first 500 of objects that were deleted from ``database``. Leave the
    others to compact_hits.

    With Redis, leave all of them to the next flush_hits: earlier hits must be flushed first, and
    that may take too long for a page. Only note their COMMIT, if the counts are in another
    database. If the database of the counts is away, do not raise.

    Costs a query, and what forgetting.forget_deleted() costs. With Redis, costs what
    forgetting.note_commits() costs, and nothing if the counts are in the same database.
    """
    some = objects[:OBJECTS_AT_A_TIME]
    try:
        if not get_buffer().keeps_hits:
            deleted = forgetting.read_deleted(some)
            forgetting.forget_deleted(deleted, patience_seconds=PAGE_PATIENCE_SECONDS)
        elif database != hits_alias():
            forgetting.note_commits(some, patience_seconds=PAGE_PATIENCE_SECONDS)
    except DATABASE_ERRORS as exc:
        message = "%d deleted objects are left to the next flush_hits or compact_hits: %s"
        logger.warning(message, len(objects), exc)


aforget_hits = async_twin(forget_hits)
"""See forget_hits()."""
