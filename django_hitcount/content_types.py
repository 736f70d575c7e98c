"""
Content type ids, without a query per hit and without ids that a rollback took back.

Django caches a content type for the life of the process as soon as it has made its row, in a
transaction, too. If that rolls back, the cache has an id that is not there, and hits of that
model would be refused until the process is restarted.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.contenttypes.models import ContentType, ContentTypeManager
from django.db import connections, models, transaction
from django.db.models.signals import post_delete, post_save

_UNCOMMITTED = "_hitcount_uncommitted"
"""An attribute of a content type whose row a transaction has made that is not over."""


def content_type_id(model: type[models.Model], *, using: str) -> int:
    """
    The id of the content type of ``model`` in the database ``using``.

    Costs one query the first time a process meets the model, none after.
    """
    manager = _content_types(using)
    content_type = manager.get_for_model(model)
    if _UNCOMMITTED in content_type.__dict__ and not _is_own_transaction(content_type, using):
        forget_content_types()
        content_type = manager.get_for_model(model)
    pk: int = content_type.pk
    return pk


def forget_content_types() -> None:
    """Look each content type up again; for rows that were made anew elsewhere."""
    ContentType.objects.clear_cache()


@cache
def _content_types(using: str) -> ContentTypeManager:
    """Kept, as Django copies the manager whenever it is asked for that of a database."""
    return ContentType.objects.db_manager(using)


class _Committed:
    """A callback after COMMIT; while it waits, the transaction that made the row is open."""

    def __init__(self, content_type: ContentType) -> None:
        self.content_type = content_type
        self.__qualname__ = type(self).__qualname__  # Django logs the name of one that fails.

    def __call__(self) -> None:
        self.content_type.__dict__.pop(_UNCOMMITTED, None)


def _is_own_transaction(content_type: ContentType, using: str) -> bool:
    """Whether this thread's transaction has made the row, and not rolled it back."""
    waiting = (callback for _, callback, *_ in connections[using].run_on_commit)
    return any(
        isinstance(callback, _Committed) and callback.content_type is content_type
        for callback in waiting
    )


def _on_save(instance: ContentType, created: bool, using: str, **kwargs: Any) -> None:
    connection = connections[using]
    if not created or not (connection.in_atomic_block or not connection.get_autocommit()):
        return
    setattr(instance, _UNCOMMITTED, True)
    if connection.in_atomic_block:
        transaction.on_commit(_Committed(instance), using=using, robust=True)


def _on_delete(**kwargs: Any) -> None:
    forget_content_types()


post_save.connect(_on_save, sender=ContentType, dispatch_uid="django_hitcount.content_types")
post_delete.connect(_on_delete, sender=ContentType, dispatch_uid="django_hitcount.content_types")
