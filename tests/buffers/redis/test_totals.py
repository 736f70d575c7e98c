"""Which totals Redis keeps."""

from __future__ import annotations

import pytest

from django_hitcount.buffers import get_buffer
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
