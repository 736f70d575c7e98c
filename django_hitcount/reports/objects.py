"""Which objects the rows of a report are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from django.db import router
from django.db.models import Model

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.primary_keys import find_by_texts, key_text
from django_hitcount.reports.selection import CountedModel

MOST_MODELS = 3
"""
Models whose objects are loaded, those with the most rows first.

Each costs a query. Rows of further models are named after their primary key.
"""


def load_objects(
    keys: Collection[ObjectKey], models: Iterable[CountedModel]
) -> dict[ObjectKey, Model]:
    """
    Return the objects with these keys. Leaves out those that are deleted.

    Costs a query for each of up to three models, whatever the number of objects.
    """
    by_id = {counted.content_type_id: counted.model for counted in models}
    texts: dict[int, list[str]] = defaultdict(list)
    for content_type_id, text in keys:
        if content_type_id in by_id:
            texts[content_type_id].append(text)
    most = sorted(texts, key=lambda pk: (-len(texts[pk]), pk))[:MOST_MODELS]
    return {
        (pk, key_text(obj)): obj
        for pk in most
        for obj in find_by_texts(by_id[pk], texts[pk], using=router.db_for_read(by_id[pk]))
    }


def name_object(key: ObjectKey, objects: Mapping[ObjectKey, Model]) -> str:
    """Return the text of an object, or its primary key if it is not among ``objects``."""
    return str(objects[key]) if key in objects else key[1]
