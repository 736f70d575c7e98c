"""
Reports: queries that return typed rows, and the charts and CSV made of them.

Here is how they name counters and objects, and find the models and objects that they name.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import router
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy

from django_hitcount import conf
from django_hitcount.counters import group_items
from django_hitcount.counters.keys import InvalidKey, ObjectKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db.tables import HitSlot, hits_alias
from django_hitcount.reports.selection import Models, Selection

MOST_MODELS = 3
"""
Models whose objects a page loads, those with the most rows first.

Each costs a query. Rows of further models are named after their primary key.
"""

logger = logging.getLogger("django_hitcount")

# Names of counters that most sites have. A project translates its own in its own catalog.
_KNOWN = [gettext_lazy("Views"), gettext_lazy("Downloads")]


def label_counter(counter: str) -> str:
    """Return the name of a counter for people: "file_downloads" is "File downloads"."""
    return gettext(capfirst(counter.replace("_", " ")))


def counter_choices() -> list[tuple[str, str]]:
    """Return all declared counters with their labels, "views" first."""
    return [(counter, label_counter(counter)) for counter in conf.get_config().counters]


def model_choices(models: Models) -> list[tuple[str, str]]:
    """Return models with their names and those of their apps."""
    return [
        (meta.label_lower, f"{capfirst(meta.verbose_name_plural)} ({meta.app_config.verbose_name})")
        for meta in (model._meta for model in models.values())
    ]


def label_object(obj: Model) -> str:
    """Return the text of an object; "Article 7" if it has none, or if its ``__str__()`` raises."""
    try:
        text = str(obj)
    except Exception:  # noqa: BLE001 - what a project writes must not take a page down
        _log_failure(obj._meta.model)
        text = ""
    return text if text.strip() else label_key(str(obj._meta.verbose_name), str(obj.pk))


def label_key(model_name: str, key: str) -> str:
    """Return the name of an object of which only the model and the primary key are known."""
    return f"{capfirst(model_name)} {key}"


@cache
def _log_failure(model: type[Model]) -> None:
    """Log the error that is handled, once in a process: a list may have many such objects."""
    logger.exception(
        "The __str__() of %s failed, and the object is named after its primary key",
        model._meta.label,
    )


def find_models() -> Models:
    """Return the models of which there is a row of hits, by name. Costs a query."""
    # Not EXISTS: MariaDB would read a whole index for it. In the order of an index, because
    # PostgreSQL would read all rows for each content type without hits.
    types = _types_with(HitSlot.objects.order_by(*HitSlot.KEY, "slot"))
    # A content type has no model if the site does not have it any more.
    found = {of.pk: model for of in types if (model := of.model_class())}

    def name(pk: int) -> tuple[str, str]:
        opts = found[pk]._meta
        return str(opts.verbose_name_plural), opts.label

    return {pk: found[pk] for pk in sorted(found, key=name)}


def _types_with(rows: QuerySet[HitSlot]) -> list[ContentType]:
    """Return the content types that have one of ``rows``, which are in the order of an index."""
    using = hits_alias()
    one = rows.filter(content_type=OuterRef("pk")).values("content_type")[:1]
    all_types = ContentType.objects.using(using).alias(row=Subquery(one))
    return [*all_types.filter(row__isnull=False)]


def leave_out_overviews(selection: Selection) -> Selection:
    """
    Return the selection without those models whose hits are hits of others, too, if it is of all
    models: a page is viewed to see an object, and belongs to a site, and its hit counts once.

    On a counter that only pages have, they are what is left. Costs a query if there are pages.
    """
    levels = {pk: getattr(model, "overview_level", 0) for pk, model in selection.models.items()}
    if selection.model or len({*levels.values()}) < 2:
        return selection
    rows = HitSlot.objects.filter(counter=selection.counter)
    counted = _types_with(rows.order_by("content_type", "counter", "is_compacted", "hits"))
    least = min((levels[each.pk] for each in counted if each.pk in levels), default=0)
    models = [model for pk, model in selection.models.items() if levels[pk] > least]
    return replace(selection, overviews=models)


def load_objects(
    keys: Collection[ObjectKey],
    models: Mapping[int, type[Model] | None],
    *,
    most_models: int | None = None,
) -> dict[ObjectKey, Model]:
    """
    Return the objects with these keys. Leaves out those that are deleted, or have no model.

    Costs a query for each of up to ``most_models`` models, whatever the number of objects.
    """
    wanted = [key for key in keys if models.get(key[0])]
    texts = group_items([key[0] for key in wanted], [key[1] for key in wanted])
    found: dict[ObjectKey, Model] = {}
    by_rows = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))
    for content_type_id, of_model in by_rows[:most_models]:
        model: Any = models[content_type_id]
        with suppress(InvalidKey):  # The model may have a primary key of another type now.
            objs = find_by_texts(model, of_model, using=router.db_for_read(model))
            found |= {(content_type_id, convert_key(model, obj.pk)): obj for obj in objs}
    return found
