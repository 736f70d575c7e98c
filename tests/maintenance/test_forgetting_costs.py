"""What it costs to delete many objects, or one while much waits in Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.signals import pre_delete

from django_hitcount import deletion
from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.deleted import is_nothing_left
from tests.redis_server import names_of
from tests.waits import waits_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis"),
]

SECONDS = 60


@pytest.fixture
def database_buffer(settings):
    """No Redis."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}


@pytest.mark.long
def test_ten_thousand_objects_cost_few_statements(buffer, django_assert_max_num_queries):
    objects = Article.objects.bulk_create(Article(title=str(n)) for n in range(10_000))
    record_hits(objects[:2000])
    record_hits(objects[:2000], counter="downloads")

    with django_assert_max_num_queries(1000) as queries:
        Article.objects.all().delete()
    flush_hits()

    assert is_nothing_left()
    inserts = [q for q in queries if 'INTO "django_hitcount_deleted' in q["sql"].replace("`", '"')]
    assert len(inserts) <= 100  # 20, or what an old SQLite takes with 999 parameters.


def test_callbacks_of_others_do_not_split_a_deletion(buffer, django_assert_max_num_queries):
    """A receiver, such as that of a search index, needs a signal for each object."""
    Article.objects.bulk_create(Article(title=str(n)) for n in range(100))

    def add_callback(**kwargs):
        transaction.on_commit(lambda: None)

    pre_delete.connect(add_callback, sender=Article)
    try:
        with django_assert_max_num_queries(30):
            Article.objects.all().delete()
    finally:
        pre_delete.disconnect(add_callback, sender=Article)
    assert connection.run_on_commit == []


@contextmanager
def rows_locked_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lock the rows of deleted objects for six seconds, when a page looks for their objects."""
    find_living, other = forgetting._find_living, connection.copy()
    other.set_autocommit(False)

    def lock_and_find(*args: Any) -> Any:
        with other.cursor() as cursor:
            cursor.execute("SELECT id FROM django_hitcount_deletedobject FOR UPDATE")
        release.start()
        return find_living(*args)

    release = threading.Timer(6, other.connection.rollback)
    monkeypatch.setattr(forgetting, "_find_living", lock_and_find)
    monkeypatch.setattr(deletion, "PAGE_PATIENCE_SECONDS", 0.5)
    try:
        yield
    finally:
        release.join()
        other.close()


class TestWhatAPageWorksOff:
    def test_few_objects_without_redis(self, database_buffer):
        most = deletion.OBJECTS_AT_A_TIME
        objects = Article.objects.bulk_create(Article(title=str(n)) for n in range(2 * most + 1))
        record_hits(objects)

        Article.objects.all().delete()

        assert HitSlot.objects.count() == most + 1
        compact_hits()
        assert is_nothing_left()

    def test_no_rows_that_stay_locked(self, database_buffer, caplog, monkeypatch):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        monkeypatch.setattr(deletion, "PAGE_PATIENCE_SECONDS", 0)
        error = OperationalError("locked")
        with mock.patch.object(forgetting, "take_rows", side_effect=error) as tries:
            article.delete()

        assert tries.call_count == 1
        assert "left to the next flush_hits or compact_hits: locked" in caplog.text
        compact_hits()
        assert is_nothing_left()

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
    def test_no_locked_rows_of_deleted_objects(self, database_buffer, caplog, monkeypatch):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        with rows_locked_at_the_first_look(monkeypatch), waits_for(0, 4):
            article.delete()

        assert "left to the next flush_hits or compact_hits" in caplog.text

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
    @pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])
    def test_no_locked_row_of_an_object_in_another_database(
        self, redis_buffer, caplog, monkeypatch
    ):
        article = Article.objects.using("elsewhere").create(title="Tea")
        with rows_locked_at_the_first_look(monkeypatch), waits_for(0, 4):
            article.delete()

        assert "left to the next flush_hits or compact_hits" in caplog.text

    def test_nothing_with_redis(self, redis, redis_buffer, django_assert_max_num_queries):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        flush_hits()
        record_hit(article)

        before = redis.info("stats")["total_commands_processed"]
        with django_assert_max_num_queries(10) as queries:
            article.delete()

        assert redis.info("stats")["total_commands_processed"] == before + 1  # INFO itself.
        assert not [q for q in queries if "hitslot" in q["sql"]]
        flush_hits()
        assert is_nothing_left()

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one lock for all")
    def test_no_batch_that_another_flusher_is_at(self, redis_buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        is_writing, may_go_on = threading.Event(), threading.Event()
        add_totals = slots.add_totals

        def wait(*args, **kwargs):
            is_writing.set()
            may_go_on.wait(SECONDS)
            return add_totals(*args, **kwargs)

        with mock.patch.object(slots, "add_totals", wait), ThreadPoolExecutor() as pool:
            flushing = pool.submit(flush_and_disconnect)
            assert is_writing.wait(SECONDS)
            with waits_for(0, 4):
                article.delete()
            is_still_writing = not flushing.done()
            may_go_on.set()
            flushing.result()

        assert is_still_writing
        flush_hits()
        assert is_nothing_left()


def flush_and_disconnect() -> None:
    try:
        flush_hits()
    finally:
        connection.close()


class TestFullPartition:
    COUNTERS = 1000

    def fill(self, redis, article, counters: int) -> None:
        """Record hits of other objects in the partition of the article."""
        key = counter_key(article, counter="views")
        names = names_of(redis, key, get_config().partitions)
        for start in range(0, counters, 1000):
            numbers = range(start, min(start + 1000, counters))
            others = [key._replace(object_id=f"{10**6 + n}") for n in numbers]
            with redis.pipeline(transaction=False) as pipeline:
                pipeline.hset(names.pending, mapping={other.on(day_of()): 1 for other in others})
                pipeline.hincrby(names.pending, "counters", len(others))
                pipeline.execute()

    def test_is_left_to_the_next_flush(self, redis, redis_buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        self.fill(redis, article, self.COUNTERS)
        pk = article.pk
        article.delete()
        assert not HitSlot.objects.exists()

        flush_hits()

        assert HitSlot.objects.count() == self.COUNTERS
        assert not HitSlot.objects.filter(object_id=str(pk)).exists()

    @pytest.mark.long
    def test_no_command_stops_redis(self, redis, redis_buffer):
        """Redis does one thing at a time: all other pages wait for the longest command."""
        article = Article.objects.create(pk=1, title="Tea")
        record_hit(article)
        self.fill(redis, article, 500_000)
        threshold = redis.config_get("slowlog-log-slower-than")
        redis.config_set("slowlog-log-slower-than", 0)
        try:
            slowest = [self.delete_and_time_commands(redis) for _ in range(3)]
        finally:
            redis.config_set(*threshold.keys(), *threshold.values())

        # Microseconds. A few hundred are enough, unless a busy machine stops Redis meanwhile.
        assert min(slowest) < 20_000

    def delete_and_time_commands(self, redis) -> int:
        """Delete and forget article 1; return the microseconds that the longest command took."""
        article = Article(pk=1, title="Tea")
        article.save()
        record_hit(article)
        redis.slowlog_reset()
        article.delete()
        forgetting.forget_deleted(forgetting.read_due())
        return max(entry["duration"] for entry in redis.slowlog_get(1000))
