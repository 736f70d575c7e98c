"""
Keys of the counters of objects.

They have content type ids, which cost no query per hit, and never are ids that a rollback has
removed. Django caches a content type until the process ends as soon as it has inserted its row,
even within a transaction. If that rolls back, the cache has an id that does not exist, and all hits
of that model would fail until the process restarts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import connections, models, transaction
from django.db.models.signals import post_delete, post_save

from django_hitcount.conf import get_config
from django_hitcount.counters import list_values
from django_hitcount.counters.keys import CounterKey, check_counter
from django_hitcount.counters.primary_keys import counted_model, is_unsaved, object_id_of
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import hits_alias
from django_hitcount.db.transactions import is_in_transaction
from django_hitcount.exceptions import InvalidArgument

_UNCOMMITTED = "_hitcount_uncommitted"
"""Attribute of a content type whose row was inserted in a transaction that may still roll back."""


def counter_key(obj: models.Model, *, counter: str) -> CounterKey:
    """
    Return the key of ``counter`` on ``obj``, or on the object that it says its hits are of.

    Costs one query at the first call of a process for a model, and none at later calls.

    Raises InvalidArgument if hits of the counter, or of the object, cannot be counted.
    """
    if type(counter) is not str or counter not in get_config().counters:
        check_counter(counter)
    if getattr(obj, "hit_count_object", None) is not None:
        obj = counted_object(obj)
    object_id = object_id_of(obj)
    return CounterKey(content_type_id_of(obj), object_id, counter)


def counted_object(obj: models.Model) -> models.Model:
    """
    Return the object whose hits those of ``obj`` are: what its method ``hit_count_object()``
    returns, and without such a method ``obj`` itself.

    Raises UnsavedObject if ``obj`` is not saved, and InvalidArgument if the other object is not, or
    says in turn that its hits are of a third one.
    """
    found: models.Model = _follow(obj)
    if found is not obj and (last := _follow(found)) is not found and last != found:
        raise InvalidArgument(
            f"Invalid hit_count_object(): that of {obj!r} returns {found!r}, and that of this one "
            f"returns {last!r}. Return the last of them at once."
        )
    return found


def _follow(obj: Any) -> Any:
    method = getattr(obj, "hit_count_object", None)
    if method is None or not isinstance(obj, models.Model) or is_unsaved(obj):
        return obj
    found = method()
    if not isinstance(found, models.Model) or is_unsaved(found):
        raise InvalidArgument(
            f"Invalid hit_count_object(): that of {obj!r} returns {found!r}. Return a saved "
            "object, and self if the hits are its own."
        )
    return found


def keys_by_object(objs: Any, *, counter: str) -> dict[Any, CounterKey]:
    """Return the keys of ``counter`` on one object, or on each object of an iterable."""
    return {obj: counter_key(obj, counter=counter) for obj in list_values(objs)}


def content_type_id_of(obj: models.Model | type[models.Model]) -> int:
    """
    Return the content type id of the model that ``obj`` counts as, see counted_model().

    Costs one query at the first call of a process for a model, and none at later calls. Within the
    transaction that inserts the content type, each call costs one.
    """
    # Not type(obj): request.user is a lazy object, which only looks like its model.
    using, model = hits_alias(), counted_model(obj._meta.model)
    # Where get_for_model() looks first. It would take three times as long for each hit.
    known = _cached_types().get(using, {})
    content_type = known.get((model._meta.app_label, model._meta.model_name))
    if content_type is None or _UNCOMMITTED in content_type.__dict__:
        with savepoint(using):
            content_type = _look_up(model, using)
    return content_type.id


def find_model(content_type_id: int) -> type[models.Model] | None:
    """Return a content type's model; None if its app is gone. Costs a query once per process."""
    content_types = ContentType.objects.db_manager(hits_alias())
    try:
        return content_types.get_for_id(content_type_id).model_class()
    except ContentType.DoesNotExist:
        return None


@cache
def _cached_types() -> dict[str, dict[tuple[str, str | None], ContentType]]:
    """Return the content types that Django caches, by database, app label and model name."""
    found: dict[str, dict[tuple[str, str | None], ContentType]]
    found = ContentType.objects._cache  # type: ignore[attr-defined]  # The stubs leave it out.
    return found


def _look_up(model: type[models.Model], using: str) -> ContentType:
    manager = ContentType.objects.db_manager(using)
    content_type = manager.get_for_model(model)
    if _UNCOMMITTED in content_type.__dict__ and not _confirm(content_type, using):
        clear_content_types()
        content_type = manager.get_for_model(model)
    return content_type


def clear_content_types(**kwargs: Any) -> None:
    """Clear the cache of content types. Call it when another process may have deleted one."""
    ContentType.objects.clear_cache()


def _confirm(content_type: ContentType, using: str) -> bool:
    """
    Return whether the row exists for this thread; if it is committed, stop checking it.

    Asks the database, because Django reports neither a savepoint that was rolled back by hand
    nor the end of a transaction in another thread.
    """
    if not ContentType.objects.using(using).filter(pk=content_type.pk).exists():
        return False
    if not is_in_transaction(using):
        content_type.__dict__.pop(_UNCOMMITTED, None)
    return True


def _on_save(instance: ContentType, created: bool, using: str, **kwargs: Any) -> None:
    if not created or not is_in_transaction(using):
        return
    setattr(instance, _UNCOMMITTED, True)
    if connections[using].in_atomic_block:

        def look_again() -> None:  # Not a partial: Django logs the name of a callback that fails.
            _confirm(instance, using)

        transaction.on_commit(look_again, using=using, robust=True)


post_save.connect(_on_save, sender=ContentType, dispatch_uid="django_hitcount.content_types")
post_delete.connect(
    clear_content_types, sender=ContentType, dispatch_uid="django_hitcount.content_types"
)
