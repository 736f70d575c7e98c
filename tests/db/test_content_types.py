"""A process never counts under the id of a content type whose creation was rolled back."""

from __future__ import annotations

import threading
import time

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction

from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests.app.models import Plain

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def plain():
    """An object whose model has no content type yet."""
    plain = Plain.objects.create(name="x")
    rows().delete()
    ContentType.objects.clear_cache()
    yield plain
    ContentType.objects.clear_cache()


def rows():
    return ContentType.objects.filter(app_label="app", model="plain")


def wait_until_cleared(thread: threading.Thread) -> None:
    """Until the thread has not found what it may use; it then waits for our row."""
    deadline = time.monotonic() + 10
    while thread.is_alive() and ContentType.objects._cache:
        assert time.monotonic() < deadline
        time.sleep(0.001)


class RolledBack(Exception):
    """The exception that the view raises."""


def test_hits_count_after_the_transaction_that_made_the_content_type_rolled_back(buffer, plain):
    with pytest.raises(RolledBack), transaction.atomic():
        record_hit(plain)
        raise RolledBack

    assert record_hit(plain).total == 1
    assert not flush_hits().malformed
    assert {row.content_type for row in HitSlot.objects.all()} == {rows().get()}


def test_hits_count_though_another_process_created_the_content_type(buffer, plain):
    with pytest.raises(RolledBack), transaction.atomic():
        ContentType.objects.get_for_model(Plain)
        raise RolledBack

    assert record_hit(plain).total == 1


def test_hits_count_after_a_savepoint_was_rolled_back(buffer, plain):
    with transaction.atomic():
        sid = connection.savepoint()
        record_hit(plain)
        connection.savepoint_rollback(sid)
        record_hit(plain)
    flush_hits()

    assert {row.content_type for row in HitSlot.objects.all()} == {rows().get()}


def test_rollback_that_other_code_caused_in_the_same_transaction(buffer, plain):
    with transaction.atomic():
        with pytest.raises(RolledBack), transaction.atomic():
            record_hit(plain)
            raise RolledBack
        assert record_hit(plain).counted

    assert record_hit(plain).total == 2


def test_content_type_is_looked_up_once(redis_buffer, plain, django_assert_num_queries):
    with transaction.atomic():
        made = content_type_id_of(plain)

    with django_assert_num_queries(0):
        assert content_type_id_of(plain) == made


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_another_thread_does_not_take_an_id_that_is_not_committed(buffer, plain):
    """Django caches content types per process: all threads see the one that a thread created."""
    hits = []

    def count() -> None:
        hits.append(record_hit(plain))
        connection.close()

    other = threading.Thread(target=count)
    with pytest.raises(RolledBack), transaction.atomic():
        content_type_id_of(plain)
        other.start()
        wait_until_cleared(other)
        raise RolledBack
    other.join(timeout=10)
    assert hits[0].counted

    flush_hits()
    assert {row.content_type for row in HitSlot.objects.all()} == {rows().get()}


def test_content_type_that_is_deleted_here_is_created_again(buffer, plain):
    record_hit(plain)
    rows().get().delete()

    assert record_hit(plain).counted
    flush_hits()
    assert {row.content_type for row in HitSlot.objects.all()} == {rows().get()}
