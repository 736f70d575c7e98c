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

from django_hitcount.db.savepoints import savepoint

_UNCOMMITTED = "_hitcount_uncommitted"
"""An attribute of a content type whose row a transaction has made that is not over."""


def content_type_id(model: type[models.Model], *, using: str) -> int:
    """
    The id of the content type of ``model`` in the database ``using``.

    Costs one query the first time a process meets the model, none after; and one each time
    within the transaction that makes the content type.
    """
    manager = _content_types(using)
    try:
        # What get_for_model() does first (stubs leave it out): a savepoint takes 3 us each time.
        content_type = manager._get_from_cache(model._meta)  # type: ignore[attr-defined]
    except KeyError:
        content_type = None
    if content_type is None or _UNCOMMITTED in content_type.__dict__:
        with savepoint(using):
            content_type = _look_up(manager, model, using)
    pk: int = content_type.pk
    return pk


def _look_up(manager: ContentTypeManager, model: type[models.Model], using: str) -> ContentType:
    content_type = manager.get_for_model(model)
    if _UNCOMMITTED in content_type.__dict__ and not _is_there(content_type, using):
        clear_content_types()
        content_type = manager.get_for_model(model)
    return content_type


def clear_content_types() -> None:
    """Look each content type up again; for rows that were made anew elsewhere."""
    ContentType.objects.clear_cache()


@cache
def _content_types(using: str) -> ContentTypeManager:
    """Kept, as Django copies the manager whenever it is asked for that of a database."""
    return ContentType.objects.db_manager(using)


def _is_there(content_type: ContentType, using: str) -> bool:
    """
    Whether the row is there, for this thread; remembers it if no transaction can take it back.

    Asked of the database, since Django does not tell of a savepoint that was rolled back by
    hand, nor another thread of the end of a transaction.
    """
    if not ContentType.objects.using(using).filter(pk=content_type.pk).exists():
        return False
    if not _in_transaction(using):
        content_type.__dict__.pop(_UNCOMMITTED, None)
    return True


def _in_transaction(using: str) -> bool:
    connection = connections[using]
    return connection.in_atomic_block or not connection.get_autocommit()


def _on_save(instance: ContentType, created: bool, using: str, **kwargs: Any) -> None:
    if not created or not _in_transaction(using):
        return
    setattr(instance, _UNCOMMITTED, True)
    if connections[using].in_atomic_block:

        def look_again() -> None:  # A function and no partial: Django logs its name if it fails.
            _is_there(instance, using)

        transaction.on_commit(look_again, using=using, robust=True)


def _on_delete(**kwargs: Any) -> None:
    clear_content_types()


post_save.connect(_on_save, sender=ContentType, dispatch_uid="django_hitcount.content_types")
post_delete.connect(_on_delete, sender=ContentType, dispatch_uid="django_hitcount.content_types")
