"""What get_flush_status() reports of hits that wait, of flushes, and of a Redis that is away."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest
from django.test import RequestFactory
from django.utils import timezone

from django_hitcount.buffers import get_buffer
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import LastBatch
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.status import STUCK_AFTER, FlushStatus, get_flush_status
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.cache_alias import NOWHERE, change_alias
from tests.redis_server import names_of, sends

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = FlushStatus(
    pending_counters=0, oldest_pending_at=None, last_flush_at=None, stuck_batch_since=None
)


@pytest.fixture
def articles():
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(40))


def is_now(moment):
    return abs(timezone.now() - moment) < datetime.timedelta(minutes=1)


def set_moment(redis, article, hash_name, field, moment):
    names = names_of(redis, counter_key(article, counter="views"))
    redis.hset(getattr(names, hash_name), field, int(moment.timestamp()))


def test_nothing_waits(buffer):
    assert get_flush_status() == NOTHING


def test_without_redis_nothing_ever_waits(articles):
    record_hit(articles[0])

    assert get_flush_status() == NOTHING


def test_pending_counters_of_all_partitions(redis_buffer, articles):
    record_hits([*articles, articles[0]])
    record_hit(articles[0])
    status = get_flush_status()

    assert status.pending_counters == len(articles)
    assert is_now(status.oldest_pending_at)
    assert (status.last_flush_at, status.stuck_batch_since) == (None, None)


def test_refused_hits_are_not_pending(redis_buffer, articles):
    request = RequestFactory(headers=BROWSER).get("/")

    assert not record_hit(articles[0], request, refusals=[lambda *_: True]).counted

    assert get_flush_status() == NOTHING


def test_oldest_of_all_hits(redis, redis_buffer, articles):
    record_hits(articles)
    hour_ago = timezone.now().replace(microsecond=0) - datetime.timedelta(hours=1)
    set_moment(redis, articles[3], "pending", "since", hour_ago)

    assert get_flush_status().oldest_pending_at == hour_ago


def test_after_a_flush(redis_buffer, articles):
    record_hits(articles)
    flush_hits()
    record_hit(articles[0])
    status = get_flush_status()

    assert status.pending_counters == 1
    assert is_now(status.last_flush_at)
    assert status.last_flush_at == max(batch.flushed_at for batch in LastBatch.objects.all())


class TestBatchThatIsNotSettled:
    @pytest.fixture(autouse=True)
    def batch(self, redis_buffer, articles):
        record_hit(articles[0])
        key = counter_key(articles[0], counter="views")
        failing = mock.patch.object(flushing, "apply", side_effect=RuntimeError)
        with failing, pytest.raises(RuntimeError):
            flushing.flush_partition(get_buffer(), key.partition(16))

    def test_new_one_is_not_stuck(self):
        status = get_flush_status()

        assert status.pending_counters == 1
        assert is_now(status.oldest_pending_at)
        assert status.stuck_batch_since is None

    def test_old_one_is_stuck(self, redis, articles):
        long_ago = timezone.now().replace(microsecond=0) - STUCK_AFTER
        set_moment(redis, articles[0], "batch", "claimed_at", long_ago)
        record_hit(articles[1])

        assert get_flush_status().stuck_batch_since == long_ago
        flush_hits()
        assert get_flush_status().stuck_batch_since is None

    def test_its_hits_are_the_oldest(self, redis, articles):
        long_ago = timezone.now().replace(microsecond=0) - datetime.timedelta(hours=2)
        set_moment(redis, articles[0], "batch", "since", long_ago)
        record_hit(articles[0])
        status = get_flush_status()

        assert status.oldest_pending_at == long_ago
        assert status.pending_counters == 2


def test_redis_away(redis_buffer, articles, settings):
    record_hit(articles[0])
    flush_hits()
    change_alias(settings, LOCATION=NOWHERE)
    status = get_flush_status()

    assert not status.is_answering
    assert is_now(status.last_flush_at)
    assert status.pending_counters == 0


def test_foreign_values_do_no_harm(redis, redis_buffer, articles):
    record_hit(articles[0])
    names = names_of(redis, counter_key(articles[0], counter="views"))
    redis.delete(names.pending)
    redis.rpush(names.pending, "somebody else's")
    redis.hset(names.batch, mapping=dict.fromkeys(("since", "claimed_at", "counters"), "a few"))

    assert get_flush_status() == NOTHING


@pytest.mark.parametrize("text", ["1e999", "nan", "-1", "0x10", "9" * 15])
def test_moment_that_nobody_can_have_noted_is_not_known(redis, redis_buffer, articles, text):
    record_hits([articles[0]])
    names = names_of(redis, counter_key(articles[0], counter="views"))
    redis.hset(names.pending, "since", text)

    assert get_flush_status().oldest_pending_at is None
    assert get_flush_status().pending_counters == 1


def test_costs(redis_buffer, articles, django_assert_num_queries):
    record_hits(articles)
    get_flush_status()

    with sends() as trips, django_assert_num_queries(1):
        get_flush_status()
    assert trips() == 2
