"""Which objects of a source exist, and whose hits theirs are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from django.db import router

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters import group_items
from django_hitcount.counters.keys import ObjectKey
from django_hitcount.counters.primary_keys import (
    convert_key,
    find_by_texts,
    named_models,
    object_id_of,
)
from django_hitcount.db.counter_keys import counter_key, find_model
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings, SourceRow

ROWS_AT_A_TIME = 500
"""Few enough objects for the 999 parameters of an old SQLite."""


def keep_existing(rows: Iterable[SourceRow], findings: Findings) -> Iterator[SourceRow]:
    """
    Yield the rows of objects that exist, each under the object whose hits its own are.

    Costs a query per model for each 500 rows.
    """
    remaining = iter(rows)
    while some := [*islice(remaining, ROWS_AT_A_TIME)]:
        types, texts = zip(*{row.obj for row in some}, strict=True)
        by_model = group_items(types, texts)
        existing = {of: to for item in by_model.items() for of, to in _find_existing(*item)}
        for row in some:
            if row.obj in existing:
                yield row._replace(obj=existing[row.obj])
            else:
                model: Any = find_model(row.obj[0])
                problem = f"unknown object {model._meta.label_lower}:{row.obj[1][:80]}"
                findings.add_problem(row.place, problem, unknown=row.obj)


def _find_existing(content_type_id: int, texts: list[str]) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """Yield each object that exists, and the one whose hits its own are."""
    model: Any = find_model(content_type_id)
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
    types, texts = zip(*objects, strict=True)
    for content_type_id, object_ids in group_items(types, texts).items():
        model = find_model(content_type_id)
        if model in named_models:
            rows = model._default_manager.using(router.db_for_write(model))
            rows.bulk_create(map(model, sorted(object_ids)), ignore_conflicts=True)
