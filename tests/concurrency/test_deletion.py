"""No row stays when objects are deleted while compactions fold their rows."""

from __future__ import annotations

import datetime

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import DailyHitSlot, DailyVisitors, HitSlot, SeenVisitor
from django_hitcount.maintenance.compaction import compact
from tests import children
from tests.app.models import Article
from tests.sessions import wait_for_transactions_of_the_dead

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

ROUNDS = 40
OBJECTS = 10
SLOTS = range(1, 31)


def compact_until_killed() -> None:
    while True:
        compact(piece_size=50)


def rows_of(articles: list[Article]) -> list[Model]:
    """Hits in many slots, and visitors of a day that is closed."""
    content_type = ContentType.objects.get_for_model(Article)
    closed = day_of() - datetime.timedelta(days=5)
    rows: list[Model] = []
    for article in articles:
        key = {"content_type": content_type, "object_id": str(article.pk), "counter": "views"}
        for slot in SLOTS:
            rows += [
                HitSlot(**key, slot=slot, hits=1),
                DailyHitSlot(**key, day=day_of(), slot=slot, hits=1),
                SeenVisitor(**key, day=closed, visitor_key="k", visitor=f"{slot:032}"),
            ]
    return rows


def test_no_row_stays_of_objects_deleted_while_compactions_fold(redis, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    tables = (HitSlot, DailyHitSlot, SeenVisitor)
    for _ in range(2):
        children.fork(compact_until_killed)

    for number in range(ROUNDS):
        titles = [Article(title=f"{number}.{n}") for n in range(OBJECTS)]
        articles = Article.objects.bulk_create(titles)
        rows = rows_of(articles)
        for table in tables:
            table.objects.bulk_create(row for row in rows if isinstance(row, table))
        for article in articles:
            article.delete()
    children.kill_all()
    wait_for_transactions_of_the_dead()

    left = {table.__name__: table.objects.count() for table in (*tables, DailyVisitors)}
    assert left == dict.fromkeys(left, 0)
