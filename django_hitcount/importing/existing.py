"""Which objects of a source exist, and whose hits theirs are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from django.db import router

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.primary_keys import (
    convert_key,
    find_by_texts,
    named_models,
    object_id_of,
)
from django_hitcount.db.counter_keys import counter_key, find_model
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings
from django_hitcount.importing.spool import Spool


def drop_unknown_objects(spool: Spool, findings: Findings) -> int:
    """Leave out objects that do not exist. Return how many do. Costs a query per 500 objects."""
    known = 0
    for some in spool.objects():
        by_model: dict[int, list[str]] = {}
        for (content_type_id, object_id), *_ in some:
            by_model.setdefault(content_type_id, []).append(object_id)
        existing = {of: to for item in by_model.items() for of, to in _find_existing(*item)}
        spool.move({of: to for of, to in existing.items() if of != to})
        unknown = [item for item in some if item[0] not in existing]
        known += len(some) - len(unknown)
        for obj, place, first_row, rows in unknown:
            model = find_model(obj[0])
            label = model._meta.label_lower if model else f"content type {obj[0]}"
            problem = f"unknown object {label}:{obj[1][:80]}"
            if rows > 1:
                problem += f", also in {rows - 1:,} more row{'s' if rows > 2 else ''}"
            findings.add_problem(place, problem, rows=rows, first_row=first_row)
        spool.drop(obj for obj, *_ in unknown)
    return known


def _find_existing(content_type_id: int, texts: list[str]) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """Yield each object that exists, and the one whose hits its own are."""
    model = find_model(content_type_id)
    if not model:
        return
    if model in named_models:  # They are counted before they have a row.
        for text in texts:
            with suppress(InvalidArgument):  # It is no name of a counter.
                yield ((content_type_id, object_id_of(model(text))),) * 2
        return
    found = find_by_texts(model, texts, using=router.db_for_write(model))
    if hasattr(model, "hit_count_object"):
        for obj in found:
            own = content_type_id, convert_key(model, obj.pk)
            yield own, counter_key(obj, counter=DEFAULT_COUNTER)[:2]
    else:
        for pk in found.values_list("pk", flat=True):
            yield ((content_type_id, convert_key(model, pk)),) * 2


def make_named_rows(objects: Iterable[ObjectKey]) -> None:
    """Make the rows of named objects, for lists and rankings. Costs a statement per such model."""
    texts: dict[int, list[str]] = {}
    for content_type_id, object_id in objects:
        texts.setdefault(content_type_id, []).append(object_id)
    for content_type_id, object_ids in texts.items():
        model = find_model(content_type_id)
        if model in named_models:
            rows = model._default_manager.using(router.db_for_write(model))
            rows.bulk_create(map(model, sorted(object_ids)), ignore_conflicts=True)
