"""What it costs to delete many objects, or one while much waits in Redis."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
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
from django_hitcount.maintenance.flushing import flush
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


@pytest.mark.long
def test_ten_thousand_objects_cost_few_statements(buffer, django_assert_max_num_queries):
    objects = Article.objects.bulk_create(Article(title=str(n)) for n in range(10_000))
    record_hits(objects[:2000])
    record_hits(objects[:2000], counter="downloads")

    with django_assert_max_num_queries(1000) as queries:
        Article.objects.all().delete()
    flush()

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


class TestWhatAPageWorksOff:
    def test_few_objects(self, buffer):
        most = deletion.OBJECTS_PER_PAGE
        objects = Article.objects.bulk_create(Article(title=str(n)) for n in range(2 * most + 1))
        record_hits(objects)
        flush()

        Article.objects.all().delete()

        assert HitSlot.objects.count() == most + 1
        flush()
        assert is_nothing_left()

    def test_few_counters_in_all_partitions_together(self, redis_buffer):
        most = deletion.COUNTERS_PER_PAGE
        objects = Article.objects.bulk_create(Article(title=str(n)) for n in range(most + 1))
        record_hits(objects)
        ids = [obj.pk for obj in objects[:100]]

        Article.objects.filter(pk__in=ids).delete()

        assert not HitSlot.objects.exists()
        flush()
        assert HitSlot.objects.count() == most + 1 - 100

    def test_no_batch_that_meets_locks(self, redis_buffer, caplog, monkeypatch):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        monkeypatch.setattr(deletion, "PAGE_PATIENCE_SECONDS", 0)
        error = OperationalError("locked")
        with mock.patch.object(slots, "add_totals", side_effect=error) as tries:
            article.delete()

        assert tries.call_count == 1
        assert "left to the next flush_hits or compact_hits: locked" in caplog.text
        flush()
        assert is_nothing_left()

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one lock for all")
    def test_no_batch_that_another_flusher_is_at(self, redis_buffer, monkeypatch):
        monkeypatch.setattr(deletion, "PAGE_PATIENCE_SECONDS", 0.5)
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
        flush()
        assert is_nothing_left()


def flush_and_disconnect() -> None:
    try:
        flush()
    finally:
        connection.close()


class TestFullPartition:
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
        self.fill(redis, article, deletion.COUNTERS_PER_PAGE)
        pk = article.pk
        article.delete()
        assert not HitSlot.objects.exists()

        flush()

        assert HitSlot.objects.count() == deletion.COUNTERS_PER_PAGE
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
        """Delete article 1; return the microseconds that the longest command took."""
        article = Article(pk=1, title="Tea")
        article.save()
        record_hit(article)
        redis.slowlog_reset()
        article.delete()
        return max(entry["duration"] for entry in redis.slowlog_get(1000))
