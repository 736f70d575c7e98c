"""Deleted objects lose their counts, in tables and buffer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.db import connections, models, transaction
from django.db.models.signals import class_prepared, post_delete

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import content_type_id_of, hits_alias
from django_hitcount.exceptions import BufferUnavailable, InvalidKey
from django_hitcount.flushing import flush_partition
from django_hitcount.objects import counted_model, deleted_object_id
from django_hitcount.tables import (
    CounterRow,
    DailyHitSlot,
    DailyVisitors,
    HitSlot,
    SeenVisitor,
    SlotRow,
)
from django_hitcount.transactions import DATABASE_ERRORS, in_transaction, take_write_lock

OBJECTS_PER_STATEMENT = 500

ROWS_PER_TRANSACTION = 500

PATIENCE_SECONDS = 5.0
"""How long the deletion of rows is tried again for when it meets locks."""

logger = logging.getLogger("django_hitcount")

ObjectPair = tuple[int, str]
"""Content type id and object id."""


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
    post_delete.connect(_on_delete, sender=sender, dispatch_uid="django_hitcount.deletion")


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


class _ForgetOnCommit:
    """A callback after COMMIT that forgets all objects deleted next to each other."""

    def __init__(self, objects: list[ObjectPair]) -> None:
        self.objects = objects
        self.__qualname__ = type(self).__qualname__  # Django logs the name of one that fails.

    def __call__(self) -> None:
        forget(self.objects)


def _on_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    try:
        pair = (content_type_id_of(instance), deleted_object_id(instance))
    except InvalidKey:
        return  # Such a key cannot have been counted.
    _forget_on_commit(pair, using)


def _forget_on_commit(pair: ObjectPair, using: str) -> None:
    """
    Forget an object together with the COMMIT, or not at all.

    Deleting a queryset sends a signal for each object. If the last callback that was
    registered is ours and hangs on the same savepoints, it shares the fate of this object.
    """
    connection = connections[using]
    if connection.run_on_commit:
        savepoints, last, *_ = connection.run_on_commit[-1]
        if isinstance(last, _ForgetOnCommit) and savepoints == set(connection.savepoint_ids):
            last.objects.append(pair)
            return
    transaction.on_commit(_ForgetOnCommit([pair]), using=using, robust=True)


def forget(objects: Iterable[ObjectPair]) -> None:
    """
    Drop all hits of (content type id, object id) pairs; never raises because a server is away.

    Costs four short transactions per 500 objects, and one more for each 500 rows of a table;
    with Redis also four round trips, and a walk through what the partitions concerned hold.
    """
    iterator = iter(objects)
    while chunk := [*islice(iterator, OBJECTS_PER_STATEMENT)]:
        for forget in (_catch_up, _forget_in_buffer, _forget_in_tables, _forget_in_buffer):
            try:
                forget(chunk)
            except (BufferUnavailable, *DATABASE_ERRORS) as exc:
                logger.error("Hits of %d deleted objects are not forgotten: %s", len(chunk), exc)


def _catch_up(objects: list[ObjectPair]) -> None:
    """Tell the buffer what it missed, so that it does not come after."""
    get_buffer().catch_up()


def _forget_in_buffer(objects: list[ObjectPair]) -> None:
    """
    Drop what waits for a flush; called once more at last for what a page added meanwhile.

    A flusher may have read the batch that is set aside, and would write hits of these
    objects after their rows are deleted; so that batch is brought to its end.
    """
    buffer = get_buffer()
    for partition in buffer.forget(objects):
        flush_partition(buffer, partition)


def _forget_in_tables(objects: list[ObjectPair]) -> None:
    using = hits_alias()
    for model in (HitSlot, DailyHitSlot, DailyVisitors, SeenVisitor):
        delete = partial(_delete_rows, model, objects, using)
        deleted = ROWS_PER_TRANSACTION
        while deleted == ROWS_PER_TRANSACTION:
            deleted = in_transaction(
                delete, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True
            )


def _delete_rows(model: type[CounterRow], objects: list[ObjectPair], using: str) -> int:
    """Delete some rows, locked in the order of all writers; returns how many."""
    manager = model._default_manager.using(using)
    order = (*model.KEY, "slot" if issubclass(model, SlotRow) else "pk")
    take_write_lock(using)
    locked = manager.filter(_any_of(objects)).order_by(*order).select_for_update()
    pks = [*locked.values_list("pk", flat=True)[:ROWS_PER_TRANSACTION]]
    manager.filter(pk__in=pks)._raw_delete(using)
    return len(pks)


def _any_of(objects: list[ObjectPair]) -> models.Q:
    condition = models.Q(pk__in=[])
    for content_type_id, pairs in groupby(sorted(objects), key=itemgetter(0)):
        condition |= models.Q(
            content_type_id=content_type_id, object_id__in=[object_id for _, object_id in pairs]
        )
    return condition
