"""A named thing that is no object is counted like one."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.template import Context, Template
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import gettext_lazy

from django_hitcount import (
    aget_hits,
    arecord_hit,
    beacon_token,
    flush_hits,
    get_hits,
    get_visitors,
    hits_by_day,
    known_rows,
    popular,
    record_hit,
    record_hits,
)
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import DeletedObject, HitSlot
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.models import Counter
from tests.app.models import Article
from tests.beacon.sending import send
from tests.redis_server import sends
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)


def names():
    return {*Counter.objects.values_list("name", flat=True)}


def test_it_is_counted_and_read_by_its_name(rule):
    rule(visitors=True)
    record_hit(Counter("newsletter"), request_of(1))
    record_hit(Counter("newsletter"), request_of(2))
    hit = record_hit(Counter("newsletter"), amount=3)

    assert hit.total == get_hits(Counter("newsletter")) == Counter("newsletter").hits == 5
    assert get_hits(Counter("newsletter"), days=1) == 5
    assert get_visitors(Counter("newsletter")) == 2
    assert hits_by_day(Counter("newsletter"), days=1) == {day_of(): 5}
    assert get_hits([Counter("a"), Counter("newsletter")]) == {
        Counter("a"): 0,
        Counter("newsletter"): 5,
    }


def test_tags_take_it(buffer):
    source = "{% load hitcount %}{% hit_count thing %} {% hits thing days=1 %}"
    context = Context({"thing": Counter("api/v1:export"), "request": request_of(1)})

    assert Template(source).render(context) == "1 1"


async def test_async_twins_take_it(buffer, no_connection_of_the_thread_is_left):
    await arecord_hit(Counter("newsletter"))

    assert await aget_hits(Counter("newsletter")) == 1
    assert [each.name async for each in Counter.objects.all()] == ["newsletter"]


def test_its_first_hit_makes_its_row(buffer):
    assert get_hits(Counter("read")) == 0
    record_hit(Counter("bot"), request_of(1), refusals=[lambda context: True])
    assert names() == set()

    record_hits([Counter("a"), Counter("b"), Article.objects.create()])
    record_hit(Counter("a"))

    assert names() == {"a", "b"}


def test_with_redis_a_further_hit_costs_one_round_trip(redis_buffer, django_assert_num_queries):
    record_hit(Counter("newsletter"))

    with sends() as trips, django_assert_num_queries(0):
        record_hit(Counter("newsletter"))
    assert trips() == 1


def test_in_a_transaction_the_row_waits_for_the_commit(buffer):
    with transaction.atomic():
        record_hit(Counter("newsletter"))
        with CaptureQueriesContext(connection) as queries:
            record_hit(Counter("newsletter"))
        assert not [query for query in queries if "django_hitcount_counter" in query["sql"]]

    assert names() == {"newsletter"}
    assert get_hits(Counter("newsletter")) == 2


def test_row_of_a_transaction_that_rolls_back_is_made_by_the_next_hit(buffer):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record_hit(Counter("newsletter"))
        raise ZeroDivisionError
    assert names() == set()

    record_hit(Counter("newsletter"))
    assert names() == {"newsletter"}


def test_row_that_a_test_case_takes_back_is_not_remembered(buffer):
    """Else the next test would miss it."""
    with transaction.atomic():
        known_rows._make(Counter, "newsletter", "default")
        assert names() == {"newsletter"}
        transaction.set_rollback(True)

    assert not known_rows._made.recall(("default", Counter, "newsletter"))


def test_row_that_was_deleted_elsewhere_is_made_again_later(buffer, monkeypatch):
    record_hit(Counter("newsletter"))
    Counter.objects.all()._raw_delete("default")
    record_hit(Counter("newsletter"))
    assert names() == set()

    monkeypatch.setattr(known_rows.time, "monotonic", lambda: 1e12)
    record_hit(Counter("newsletter"))
    assert names() == {"newsletter"}


def test_table_that_is_away_loses_no_hit(redis_buffer, monkeypatch, caplog):
    def fail(*args: object, **more: object) -> None:
        raise DATABASE_ERRORS[0]("away")

    monkeypatch.setattr(known_rows.sql, "insert_or_ignore", fail)
    assert record_hit(Counter("newsletter")).counted
    assert "is counted, but not in lists yet" in caplog.text

    monkeypatch.undo()
    record_hit(Counter("newsletter"))
    assert names() == {"newsletter"}


def test_what_a_process_remembers_is_bounded(db, monkeypatch):
    monkeypatch.setattr(known_rows, "MOST_REMEMBERED", 3)
    rows = known_rows.KnownRows[int]()
    for number in range(5):
        rows.remember(number, number, using="default")

    assert [rows.recall(number) for number in range(5)] == [None, None, 2, 3, 4]


def test_they_are_ranked_and_listed(buffer):
    record_hit(Counter("a"))
    record_hit(Counter("b"), amount=2)
    flush_hits()

    assert [(each.name, each.hits) for each in popular(Counter, 5)] == [("b", 2), ("a", 1)]
    assert {each.name: each.hits for each in Counter.objects.with_hits()} == {"a": 1, "b": 2}


def test_deleting_one_deletes_its_hits(buffer):
    record_hit(Counter("newsletter"))
    Counter("newsletter").delete()
    flush_hits()
    compact_hits()

    assert names() == set()
    assert get_hits(Counter("newsletter")) == 0
    assert not HitSlot.objects.exists()


def test_one_that_is_counted_after_its_deletion_begins_at_zero_and_keeps_its_hits(buffer):
    record_hit(Counter("newsletter"), amount=3)
    Counter("newsletter").delete()
    flush_hits()
    compact_hits()

    record_hit(Counter("newsletter"))
    assert names() == {"newsletter"}
    Counter.objects.all()._raw_delete("default")  # Another process does not know of the deletion.
    for minutes in (5, 70):
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
            flush_hits()
            compact_hits()

    assert get_hits(Counter("newsletter")) == 1
    assert not DeletedObject.objects.exists()


def test_deletion_that_is_not_committed_deletes_no_hits(buffer):
    record_hit(Counter("newsletter"))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Counter("newsletter").delete()
        raise ZeroDivisionError
    flush_hits()
    compact_hits()

    assert get_hits(Counter("newsletter")) == 1


def test_cached_page_counts_one_that_has_no_row_yet(buffer):
    shown = beacon_token(Counter("newsletter"), show="hits")

    assert send([Counter("newsletter")], [shown]).json() == {"numbers": {shown: 1}}
    assert names() == {"newsletter"}


@pytest.mark.parametrize(
    "name",
    ["", "News", "a b", " a", "-a", "ü", "a\n", "a" * 101, 5, None, gettext_lazy("a")],
    ids=repr,
)
def test_another_name_is_an_error(name):
    with pytest.raises(InvalidArgument, match="Invalid name of a counter"):
        Counter(name)


@pytest.mark.parametrize("name", ["a", "2", "api/v1/users", "button:sign-up", "a_b.c", "a" * 100])
def test_such_names_are_counted(name, buffer):
    record_hit(Counter(name))

    assert get_hits(Counter(name)) == 1
    assert Counter.objects.get() == Counter(name)


def test_it_is_an_object_as_others(db):
    counter = Counter("newsletter")
    counter.save()
    counter.save()

    assert counter == Counter(name="newsletter") == Counter.objects.get(pk="newsletter")
    assert str(counter) == "newsletter"


def test_admin_shows_its_statistics_from_the_report(buffer):
    record_hit(Counter("api/export"))
    flush_hits()
    editor = Client()
    editor.force_login(User.objects.create_superuser("editor"))
    report = editor.get("/admin/django_hitcount/hitslot/?period=today").content.decode()
    address = "/admin/django_hitcount/counter/api_2Fexport/statistics/"

    assert address in report
    assert editor.get(address).status_code == 200
    assert "api/export" in editor.get("/admin/django_hitcount/counter/").content.decode()
    assert editor.get("/admin/django_hitcount/counter/add/").status_code == 403
    editor.post("/admin/django_hitcount/counter/api_2Fexport/delete/", {"post": "yes"})
    assert names() == set()
