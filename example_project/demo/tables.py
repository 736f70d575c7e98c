"""Reads the tables directly, not through the functions of django_hitcount."""

from __future__ import annotations

from datetime import date

from blog.models import Article
from django.contrib.contenttypes.models import ContentType
from django.db.models import Sum

from demo.report import Stored
from django_hitcount.db.tables import DailyVisitors, RefusedHitSlot
from django_hitcount.models import DailyHitSlot, HitSlot

COUNTER = "views"


def read_tables() -> Stored:
    refused = RefusedHitSlot.objects.filter(counter=COUNTER).values_list("refusal")
    return Stored(
        refused=dict(refused.annotate(Sum("hits"))),
        hits=_by_path(HitSlot, "hits"),
        visitors=_by_path(DailyVisitors, "count"),
        hits_by_day=_by_day(),
    )


def _by_day() -> dict[date, int]:
    rows = DailyHitSlot.objects.filter(content_type=_of_articles(), counter=COUNTER)
    return dict(rows.values_list("day").annotate(Sum("hits")))


def _by_path(model: type[HitSlot | DailyVisitors], column: str) -> dict[str, int]:
    rows = model.objects.filter(content_type=_of_articles(), counter=COUNTER)
    sums = rows.values_list("object_id").annotate(Sum(column))
    paths = {str(pk): path for pk, path in Article.objects.values_list("pk", "path")}
    return {paths[object_id]: total for object_id, total in sums}


def _of_articles() -> ContentType:
    return ContentType.objects.get_for_model(Article)
