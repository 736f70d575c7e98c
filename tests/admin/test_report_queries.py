"""How many queries a report costs: at most fourteen with those of Django, whatever there is."""

from __future__ import annotations

from unittest import mock

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hitcount.buffers import get_buffer
from django_hitcount.db.counter_keys import clear_content_types, counter_key
from django_hitcount.db.tables import DailyVisitors, HitSlot
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.compaction import compact
from django_hitcount.recording import record_hit, record_hits
from tests.admin.test_report import URL, visit
from tests.app.models import Article, Photo, Plain, Tag
from tests.ranked import NOON, add_daily, add_totals, day
from tests.visiting import request_of, set_rule

pytestmark = pytest.mark.django_db(transaction=True)  # Without savepoints, which are queries, too.

MOST_QUERIES = 14
OF_DJANGO = {"superuser": 2, "staff": 4}
"""For the session and the user, and for permissions: those of the user and those of groups."""

MODELS = (Article, Photo, Plain, Tag)
ADDRESSES = (
    *("", "?period=today", "?period=90", "?period=365", "?period=this-year"),
    "?model=app.photo",
)


@pytest.fixture(autouse=True)
def on_a_sunday():
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture(params=[*OF_DJANGO])
def user(request, allow, client):
    """Who looks at the report with ``client``."""
    if request.param == "staff":
        allow("view_hitslot", "view_article")
    else:
        client.force_login(User.objects.create_superuser("admin"))
    return request.param


def create(number):
    """Create objects of four models in turn."""
    objects = [model.objects.bulk_create(model() for _ in range(number)) for model in MODELS]
    return [obj for turn in zip(*objects, strict=True) for obj in turn]


def add_hits(objects, hits_of):
    """Add hits in both periods and today: some are compacted, and some are not."""
    hits = {obj: hits_of(place) for place, obj in enumerate(objects)}
    add_daily({(obj, 0, ago): hits[obj] for obj in objects for ago in (0, 1, 31)})
    add_totals({(obj, 0): 3 * hits[obj] for obj in objects})
    add_daily({(obj, 1, ago): 1 for obj in objects[:4] for ago in (0, 1)})
    add_totals({(obj, 1): 2 for obj in objects[:4]})


def add_visitors(objects, days, **columns):
    """Add a visitor of each object on each of some days."""
    DailyVisitors.objects.bulk_create(
        DailyVisitors(
            **counter_key(obj, counter="views")._asdict(), day=day(ago), count=1, **columns
        )
        for obj in objects
        for ago in range(1, days + 1)
    )


def leave_batch(obj):
    """Let a flush die after it has claimed the hits of an object, and record more hits."""
    record_hit(obj, visit())
    buffer, key = get_buffer(), counter_key(obj, counter="views")
    failing = mock.patch.object(flushing, "apply", side_effect=RuntimeError)
    if buffer.keeps_hits:
        with failing, pytest.raises(RuntimeError):
            flushing.flush_partition(buffer, key.partition(16))
    record_hit(obj, visit())


def queries_of(client, query=""):
    """The statements of a report that a new process makes."""
    clear_content_types()
    with CaptureQueriesContext(connection) as captured:
        assert client.get(URL + query).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


def test_an_empty_site(client, user, buffer):
    last_flush = 1 if buffer.keeps_hits else 0
    assert len(queries_of(client)) == OF_DJANGO[user] + 3 + last_flush


def test_the_most_that_days_without_hits_can_need(client, user, buffer, settings):
    """Rankings are read all the same, and days with hits are looked for."""
    set_rule(settings, visitors=True)
    add_hits(create(150), lambda place: 90 if place < 4 else 5)
    compact()
    add_daily({(obj, 1, 0): 1 for obj in Article.objects.all()[:4]})

    found = queries_of(client, "?first=2001-01-01&last=2001-01-02")
    assert len(found) <= MOST_QUERIES
    assert sum("MAX" in query and "dailymodelhits" in query for query in found) == 1


@pytest.mark.parametrize("visitors", [False, True])
def test_more_objects_cost_no_more(client, user, buffer, settings, visitors):
    set_rule(settings, visitors=visitors)
    add_hits(create(3), lambda place: 1000 - place)
    record_hits(Article.objects.all(), request_of(1))
    few = queries_of(client)
    HitSlot.objects.all().delete()
    objects = create(150)
    add_hits(objects, lambda place: 5000 - 5 * place)
    add_visitors(objects, 5, visitor_key="v1-never-12345678")
    record_hits(objects, request_of(1))

    assert len(queries_of(client)) == len(few) <= MOST_QUERIES


def test_the_most_that_a_report_can_need(client, user, buffer, settings):
    """Hardly any order is sure, and days are merged; hits wait, are refused, and are stuck."""
    set_rule(settings, visitors=True, VISITOR_KEY_ROTATION="month")
    objects = create(150)
    add_hits(objects, lambda place: 90 if place < 4 else 5)
    record_hits(objects[:4], request_of(1))
    record_hits(objects[:4], visit("curl"))
    flushing.flush_hits()
    with_sketch = DailyVisitors.objects.filter(sketch__isnull=False).first()
    sketch = with_sketch and with_sketch.sketch
    add_visitors(objects[:50], 80, visitor_key="v1-2026-11-12345678", sketch=sketch)
    leave_batch(objects[0])

    found = {query: len(queries_of(client, query)) for query in ADDRESSES}
    assert max(found.values()) <= MOST_QUERIES
    assert found["?period=90"] == OF_DJANGO[user] + 9 + get_buffer().keeps_hits


def test_hits_that_are_compacted_later_cost_no_more(client, user, buffer):
    objects = create(20)
    add_hits(objects, lambda place: 1000 - place)
    before = queries_of(client)
    compact()

    assert len(queries_of(client)) == len(before) <= MOST_QUERIES
