"""Which objects the rows of a report are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from django.db import router
from django.db.models import Model

from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.primary_keys import find_by_texts, key_text
from django_hitcount.reports.labels import label_object
from django_hitcount.reports.selection import CountedModel

MOST_MODELS = 3
"""
Models whose objects a page loads, those with the most rows first.

Each costs a query. Rows of further models are named after their primary key.
"""


def load_objects(
    keys: Collection[ObjectKey], models: Iterable[CountedModel], *, most_models: int | None
) -> dict[ObjectKey, Model]:
    """
    Return the objects with these keys. Leaves out those that are deleted.

    Costs a query for each of up to ``most_models`` models, whatever the number of objects.
    """
    by_id = {counted.content_type_id: counted.model for counted in models}
    texts: dict[int, list[str]] = defaultdict(list)
    for content_type_id, text in keys:
        if content_type_id in by_id:
            texts[content_type_id].append(text)
    found: dict[ObjectKey, Model] = {}
    by_rows = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))
    for content_type_id, of_model in by_rows[:most_models]:
        model = by_id[content_type_id]
        objs = find_by_texts(model, of_model, using=router.db_for_read(model))
        found |= {(content_type_id, key_text(obj)): obj for obj in objs}
    return found


def name_object(key: ObjectKey, objects: Mapping[ObjectKey, Model]) -> str:
    """Return the text of an object, or its primary key if it is not among ``objects``."""
    return label_object(objects[key]) if key in objects else key[1]
