"""Keys of the counters of objects."""

from __future__ import annotations

from django.db.models import Model

from django_hitcount.conf import get_config
from django_hitcount.counters.counted_models import counted_model, object_id_of
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.names import check_counter
from django_hitcount.db.content_types import content_type_id
from django_hitcount.db.routing import hits_alias


def counter_key(obj: Model, *, counter: str) -> CounterKey:
    """
    Return the key of ``counter`` on ``obj``.

    Costs one query at the first call of a process for a model, and none at later calls.

    Raises UnknownCounter, UnsavedObject or InvalidKey.
    """
    if type(counter) is not str or counter not in get_config().counters:
        check_counter(counter)
    object_id = object_id_of(obj)
    # Not type(obj): request.user is a lazy object, which only looks like its model.
    content_type = content_type_id(counted_model(obj._meta.model), using=hits_alias())
    return CounterKey(content_type, object_id, counter)


def content_type_id_of(obj: Model | type[Model]) -> int:
    """
    Return the content type id of the model that ``obj`` counts as, see counted_model().

    Costs one query at the first call of a process for a model, and none at later calls.
    """
    # Not type(obj): request.user is a lazy object, which only looks like its model.
    return content_type_id(counted_model(obj._meta.model), using=hits_alias())
