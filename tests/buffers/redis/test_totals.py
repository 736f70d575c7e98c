"""Which totals Redis keeps."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.conf import get_config
from django_hitcount.counters.batches import BatchId, Known
from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.redis_server import names_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_buffer")]


def test_total_from_before_redis_lost_its_memory_is_not_kept(redis):
    """Though as many claims, settles and discards came after the loss as before the reading."""
    article = Article.objects.create(title="Tea")
    buffer, key = get_buffer(), counter_key(article, counter="views")
    buffer.discard_totals([key])
    known = buffer.read([Number(key)])
    redis.flushall()
    buffer.discard_totals([key])

    buffer.keep_totals({Number(key): 5}, known)
    assert get_hits(article) == 0


def test_total_is_not_kept_while_pending_hits_are_in_the_tables(redis):
    """Redis has gone back to before the claim. It would add them to the total again."""
    article = Article.objects.create(title="Tea")
    record_hit(article)
    key = counter_key(article, counter="views")
    pending = names_of(redis, key).pending
    before = redis.hgetall(pending)
    flush_hits()
    get_buffer().discard_totals([key])
    redis.hset(pending, mapping=before)

    assert [get_hits(article) for _ in range(2)] == [1, 1]


@pytest.fixture
def left_by_an_earlier_run(redis):
    """A counter with a hit that Redis has from before it was restarted."""
    article = Article.objects.create(title="Tea")
    record_hit(article)
    key = counter_key(article, counter="views")
    names = names_of(redis, key)
    earlier = RunKeys(key.partition(get_config().partitions), "0" * 12)
    get_buffer().discard_totals([key])
    redis.rename(names.pending, earlier.pending)
    redis.set(names.runs, "0" * 12)
    return article


def test_hits_of_an_earlier_run_are_included(left_by_an_earlier_run):
    assert [get_hits(left_by_an_earlier_run, days=1) for _ in range(2)] == [1, 1]
    assert [get_hits(left_by_an_earlier_run) for _ in range(2)] == [1, 1]


def test_total_that_was_read_in_an_earlier_run_is_not_kept(redis):
    """Redis may be in an older state, with the same epoch."""
    number = Number(counter_key(Article.objects.create(title="Tea"), counter="views"))
    position = get_buffer().read([number]).keepable[number]
    earlier = position._replace(run_id="0" * 12)
    redis.set(RunKeys(position.partition, earlier.run_id).epoch, position.epoch)

    get_buffer().keep_totals({number: 5}, Known(keepable={number: earlier}))
    assert not redis.keys("*:total:*")


def test_of_two_readings_the_later_one_counts():
    batch_id, day = BatchId(1, "a", 1), datetime.date(2026, 1, 1)
    found = Known(held={batch_id: {("a", day): 1, ("b", day): 5}})
    found.add(Known(held={batch_id: {("a", day): 2}}))

    assert found.held == {batch_id: {("a", day): 2, ("b", day): 5}}
