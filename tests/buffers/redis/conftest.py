"""An article, and where its hits wait in Redis."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.counter_keys import counter_key
from tests.app.models import Article
from tests.redis_server import names_of


@pytest.fixture
def article(redis_buffer) -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def key(article) -> CounterKey:
    return counter_key(article, counter="views")


@pytest.fixture
def names(redis, key) -> RunKeys:
    """The keys of the article's partition."""
    return names_of(redis, key)
