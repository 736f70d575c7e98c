"""Which totals Redis keeps."""

from __future__ import annotations

import pytest

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.reading import get_hits
from tests.app.models import Article

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
