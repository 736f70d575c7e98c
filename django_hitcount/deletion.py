"""
Deleted objects lose their counts, in tables and buffer.

The delete's own transaction writes a DeletedObject per object. After the COMMIT they are
worked off at once, as far as a page can wait for it; flush_hits and compact_hits do the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import class_prepared, post_delete, pre_delete

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.objects import counted_model, deleted_object_id
from django_hitcount.db.commits import when_committed
from django_hitcount.db.counted_objects import content_type_id_of
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DeletedObject
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable, InvalidKey
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.flushing import flush_partition
from django_hitcount.maintenance.forgetting import ObjectPair
from django_hitcount.outages.waits import bind_to_page

COUNTERS_PER_PAGE = 1000
"""How many counters may wait in the partitions that a page flushes: about 50 ms."""

OBJECTS_PER_PAGE = forgetting.OBJECTS_AT_A_TIME
"""How many deleted objects a page works off."""

PAGE_PATIENCE_SECONDS = 0.5
"""How long a page tries again for when it meets locks."""

ROWS_PER_STATEMENT = 500

logger = logging.getLogger("django_hitcount")

_connected: set[type[models.Model]] = set()
"""Models that count, see counted_model(), and whose proxies are connected with them."""


def connect(model: type[models.Model]) -> None:
    """
    Forget the hits of objects of ``model`` when they are deleted.

    HitCountMixin does this itself; for other models, call it in AppConfig.ready(). What is
    connected is the model that they count as, see counted_model(), with all its proxies: the
    objects of it are read before a queryset deletes them. A child that is deleted with
    ``keep_parents=True`` leaves its counts to the parent.
    """
    counted = counted_model(model)
    _connected.add(counted)
    for sender in (counted, *_proxies_of(counted)):
        _connect_sender(sender)


def connected_models() -> list[type[models.Model]]:
    """The models whose objects lose their hits when they are deleted; without proxies."""
    return sorted(_connected, key=lambda model: model._meta.label)


def _connect_sender(sender: type[models.Model]) -> None:
    pre_delete.connect(_on_pre_delete, sender=sender, dispatch_uid="django_hitcount.deletion")
    post_delete.connect(_on_post_delete, sender=sender, dispatch_uid="django_hitcount.deletion")


def _proxies_of(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """Deleting through a proxy sends the proxy's signal alone."""
    for subclass in model.__subclasses__():
        if subclass._meta.proxy:  # Of the same concrete model, or it would be no proxy.
            yield subclass
            yield from _proxies_of(subclass)


def _on_class_prepared(sender: type[models.Model], **kwargs: Any) -> None:
    """Connect a proxy that is made after its model was connected."""
    if sender._meta.proxy and sender._meta.concrete_model in _connected:
        _connect_sender(sender)


class_prepared.connect(_on_class_prepared, dispatch_uid="django_hitcount.deletion")


class _Deletion:
    """
    What a transaction deletes, and the callback that forgets it after the COMMIT.

    Django sends all signals before the first object goes, then one for each that is gone.
    With the first of these, the rows of all are written: one INSERT for many.
    """

    def __init__(self, using: str) -> None:
        connection = connections[using]
        self.using = using
        self._savepoints = {*connection.savepoint_ids}
        self._place = len(connection.run_on_commit)
        self._announced: dict[ObjectPair, str] = {}
        """With the database that each was read from or saved to last."""

        self._noted: set[ObjectPair] = set()
        self._objects: dict[ObjectPair, None] = {}
        self.__qualname__ = type(self).__qualname__  # Django logs the name of one that fails.

    def __call__(self) -> None:
        work = bind_to_page(lambda: forget_now(self._objects))
        when_committed(work, databases=[hits_alias()])

    def is_on(self) -> bool:
        """Whether the COMMIT will call this, within the savepoints that are open now."""
        connection = connections[self.using]
        callbacks = connection.run_on_commit[self._place : self._place + 1]
        return self._savepoints == {*connection.savepoint_ids} and any(
            called is self for _, called, *_ in callbacks
        )

    def announce(self, pair: ObjectPair, instance: models.Model) -> None:
        """Take note of an object that is about to be deleted."""
        self._announced[pair] = instance._state.db or ""

    def note(self, pair: ObjectPair, instance: models.Model) -> None:
        """Write the rows of all that is deleted with this object, unless that was done."""
        if pair not in self._noted:
            self.announce(pair, instance)
        if self._announced:
            _write(self._announced, self.using)
            self._noted |= self._announced.keys()
            self._objects |= dict.fromkeys(self._announced)
            self._announced.clear()
        self._noted.discard(pair)


_last: WeakKeyDictionary[BaseDatabaseWrapper, _Deletion] = WeakKeyDictionary()
"""The last deletion of each connection."""


def _on_pre_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    pair = _pair_of(instance, using)
    if pair and connections[using].in_atomic_block:
        _deletion_on(using).announce(pair, instance)


def _on_post_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    pair = _pair_of(instance, using)
    if not pair:
        return
    if connections[using].in_atomic_block:
        _deletion_on(using).note(pair, instance)
        return
    deletion = _Deletion(using)
    deletion.note(pair, instance)
    transaction.on_commit(deletion, using=using, robust=True)


def _deletion_on(using: str) -> _Deletion:
    """
    The deletion that a connection is at, begun if need be.

    One callback for all objects that share the same savepoints, whatever is called in between.
    Django drops it in a rollback.
    """
    connection = connections[using]
    deletion = _last.get(connection)
    if deletion is None or not deletion.is_on():
        deletion = _last[connection] = _Deletion(using)
        transaction.on_commit(deletion, using=using, robust=True)
    return deletion


def _pair_of(instance: models.Model, using: str) -> ObjectPair | None:
    """The object that is deleted; None if it cannot have been counted."""
    try:
        with _kept_from_page(using):
            return content_type_id_of(instance), deleted_object_id(instance)
    except InvalidKey:
        pass
    return None


def _write(objects: Mapping[ObjectPair, str], using: str) -> None:
    """
    Write rows in the transaction of the delete, or in one of the database of the counts.

    What keeps a row from being written in the transaction of the delete keeps the objects
    from being deleted, too.
    """
    rows = [
        DeletedObject(
            content_type_id=content_type_id, object_id=object_id, database=using, saved_in=saved_in
        )
        for (content_type_id, object_id), saved_in in objects.items()
    ]
    counts = hits_alias()
    with _kept_from_page(using), savepoint(counts) if counts != using else nullcontext():
        DeletedObject.objects.using(counts).bulk_create(rows, batch_size=ROWS_PER_STATEMENT)


@contextmanager
def _kept_from_page(using: str) -> Iterator[None]:
    """Log it if the counts are in a database of their own and that is away."""
    if using == hits_alias():
        yield
        return
    try:
        yield
    except DATABASE_ERRORS as exc:
        logger.error("Hits of deleted objects may not be forgotten: %s", exc)


def forget(objects: Iterable[ObjectPair]) -> None:
    """
    Drop all hits of (content type id, object id) pairs of objects that are gone.

    For objects that were deleted past Django's delete(). Within a transaction it happens
    after the COMMIT. Costs an INSERT per 500 objects, then what forget_now() does.

    Raises what the database raises if it does not take note of that.
    """
    pairs = [*objects]
    using = hits_alias()
    rows = [
        DeletedObject(content_type_id=content_type_id, object_id=object_id, database=database)
        for content_type_id, object_id in pairs
        for database in [_database_of(content_type_id)]
    ]
    DeletedObject.objects.using(using).bulk_create(rows, batch_size=ROWS_PER_STATEMENT)
    when_committed(bind_to_page(lambda: forget_now(pairs)), databases=[using])


def _database_of(content_type_id: int) -> str:
    model = forgetting.model_of(content_type_id)
    return router.db_for_write(model) if model else hits_alias()


def forget_now(objects: Iterable[ObjectPair]) -> None:
    """
    Work off the rows of objects as far as a page can wait for it; never raises if a server is away.

    That is 500 objects at most, if all that waits in their partitions can be flushed soon. The
    rest is left to the next flush_hits or compact_hits.

    Costs what forgetting.work_off() does; with Redis also a round trip, a query, and a flush
    of the partitions concerned if few counters wait there.
    """
    pairs = [*islice(objects, OBJECTS_PER_PAGE)]
    with _left_to_flush(pairs):
        if _flush_partitions_of(pairs):
            for deleted in forgetting.noted(pairs):
                forgetting.work_off(deleted, patience_seconds=PAGE_PATIENCE_SECONDS)


@contextmanager
def _left_to_flush(objects: list[ObjectPair]) -> Iterator[None]:
    try:
        yield
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.warning(
            "Hits of %d deleted objects are left to the next flush_hits or compact_hits: %s",
            len(objects),
            exc,
        )


def _flush_partitions_of(objects: list[ObjectPair]) -> bool:
    """
    Bring all hits of objects to the tables; False if that takes too long for a page.

    So a batch that another flusher has read is written before the tables are cleaned: it
    would write hits of these objects afterwards.
    """
    buffer = get_buffer()
    partitions = buffer.quick_partitions(objects, counters=COUNTERS_PER_PAGE)
    for partition in partitions or ():
        flush_partition(buffer, partition, patience_seconds=PAGE_PATIENCE_SECONDS)
    return partitions is not None
