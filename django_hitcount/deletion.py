"""Deleted objects lose their counts, in tables and buffer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connections, models, transaction
from django.db.models.signals import post_delete

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import content_type_of, deleted_object_id, hits_alias
from django_hitcount.exceptions import BufferUnavailable, InvalidKey
from django_hitcount.flushing import flush_partition
from django_hitcount.tables import DailyHitSlot, HitSlot

OBJECTS_PER_STATEMENT = 500

logger = logging.getLogger("django_hitcount")

ObjectPair = tuple[int, str]
"""Content type id and object id."""


def connect(model: type[models.Model]) -> None:
    """
    Forget the hits of objects of ``model`` when they are deleted.

    HitCountMixin does this itself; for other models, call it in AppConfig.ready(). The
    objects of a model that is connected, and of its proxies, are read before a queryset
    deletes them.
    """
    for sender in {model, *_proxies_of(model)}:
        post_delete.connect(_on_delete, sender=sender, dispatch_uid="django_hitcount.deletion")


def _proxies_of(model: type[models.Model]) -> list[type[models.Model]]:
    """Deleting through a proxy sends the proxy's signal alone."""
    if not apps.models_ready:
        return []  # A model with the mixin; its proxies inherit the mixin.
    return [other for other in apps.get_models() if other._meta.concrete_model is model]


class _ForgetOnCommit:
    """A callback after COMMIT that forgets all objects deleted next to each other."""

    def __init__(self) -> None:
        self.objects: list[ObjectPair] = []

    def __call__(self) -> None:
        forget(self.objects)


def _on_delete(instance: models.Model, using: str, **kwargs: Any) -> None:
    try:
        pair = (content_type_of(instance), deleted_object_id(instance))
    except InvalidKey:
        return  # Such a key cannot have been counted.
    _callback(using).objects.append(pair)


def _callback(using: str) -> _ForgetOnCommit:
    """
    The callback that runs, or not, together with the transaction as it is now.

    Deleting a queryset sends a signal for each object. If the last callback that was
    registered is ours and hangs on the same savepoints, it shares the fate of this object.
    """
    connection = connections[using]
    if connection.run_on_commit:
        savepoints, last, *_ = connection.run_on_commit[-1]
        if isinstance(last, _ForgetOnCommit) and savepoints == set(connection.savepoint_ids):
            return last
    callback = _ForgetOnCommit()
    transaction.on_commit(callback, using=using, robust=True)
    return callback


def forget(objects: Iterable[ObjectPair]) -> None:
    """
    Drop all hits of (content type id, object id) pairs; never raises because a server is away.

    Costs two queries per 500 objects; with Redis also two round trips, and a walk through
    what the partitions concerned hold.
    """
    iterator = iter(objects)
    while chunk := [*islice(iterator, OBJECTS_PER_STATEMENT)]:
        try:
            _forget(chunk)
        except (BufferUnavailable, DatabaseError) as exc:
            logger.error("Hits of %d deleted objects are not forgotten: %s", len(chunk), exc)


def _forget(objects: list[ObjectPair]) -> None:
    """
    Drop hits from the buffer, then from the tables, then what a page added meanwhile.

    A flusher may have read the batch that is set aside, and would write hits of these
    objects after their rows are deleted; so that batch is brought to its end in between.
    """
    buffer = get_buffer()
    for partition in buffer.forget(objects):
        flush_partition(buffer, partition)
    for model in (HitSlot, DailyHitSlot):
        rows = model._default_manager.using(hits_alias()).filter(_any_of(objects))
        rows._raw_delete(rows.db)
    buffer.forget(objects)


def _any_of(objects: list[ObjectPair]) -> models.Q:
    condition = models.Q(pk__in=[])
    for content_type_id, pairs in groupby(sorted(objects), key=itemgetter(0)):
        condition |= models.Q(
            content_type_id=content_type_id, object_id__in=[object_id for _, object_id in pairs]
        )
    return condition
