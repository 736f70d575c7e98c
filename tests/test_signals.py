"""What receivers of signals get, and when."""

from __future__ import annotations

import pytest
from django.dispatch import receiver

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import record_hits
from django_hitcount.signals import hits_flushed
from tests.app.models import Article
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
    record_hits(articles)
    record_hits(articles[:1], amount=4)
    return articles


@pytest.fixture
def received():
    """What the signal brought, as (sender, sums of the tables at that time, totals, daily)."""
    found = []

    @receiver(hits_flushed)
    def keep(sender, totals, daily, **kwargs):
        found.append((sender, slot_sums(Article.objects.all()), dict(totals), dict(daily)))

    yield found
    hits_flushed.disconnect(keep)


def test_hits_flushed_brings_the_sums_of_each_batch(articles, received):
    flush()

    totals = {key: hits for _, _, found, _ in received for key, hits in found.items()}
    daily = {key: hits for *_, found in received for key, hits in found.items()}
    keys = [counter_key(article, counter="views") for article in articles]
    assert totals == dict(zip(keys, (5, 1, 1), strict=True))
    assert daily == {(key, day_of()): hits for key, hits in totals.items()}
    assert {sender for sender, *_ in received} == {type(get_buffer())}


def test_hits_flushed_is_sent_when_the_hits_are_in_the_tables(articles, received):
    flush()

    assert received
    by_key = {counter_key(article, counter="views"): article for article in articles}
    for _, sums, totals, _ in received:
        assert totals.items() <= {key: sums[article] for key, article in by_key.items()}.items()


def test_hits_flushed_is_sent_by_the_flusher_that_wrote_the_batch_alone(articles, received):
    buffer = get_buffer()
    batches = [batch for p in buffer.partitions() if (batch := buffer.claim(p))]
    for batch in batches:
        assert flushing.apply(batch)  # Another flusher, which then dies.

    flush()

    assert received == []
    assert slot_sums(articles) == dict(zip(articles, (5, 1, 1), strict=True))


def test_error_of_a_receiver_stops_no_flush(articles, received):
    def fail(**kwargs):
        raise RuntimeError("the search index is away")

    hits_flushed.connect(fail)
    try:
        flush()
    finally:
        hits_flushed.disconnect(fail)

    assert slot_sums(articles) == dict(zip(articles, (5, 1, 1), strict=True))
    assert received


def test_empty_flush_sends_nothing(redis_buffer, received):
    flush()

    assert received == []
