"""A partition that grows full asks for a flush."""

from __future__ import annotations

from unittest import mock

import pytest
from celery import current_app

from django_hitcount import signals, tasks
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def flushed_early(settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 3, "PARTITIONS": 1}
    partitions = []

    def receiver(partition, **kwargs):
        partitions.append(partition)

    with mock.patch.object(signals.partition_full, "receivers", []):
        signals.partition_full.connect(receiver)
        yield partitions


def test_partition_that_grows_full_asks_for_a_flush_once(redis_buffer, flushed_early):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(10))
    asked = []
    for article in articles:
        record_hit(article)
        record_hit(article)
        asked.append(len(flushed_early))

    assert asked == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    flush_hits()
    record_hits(articles)
    assert flushed_early == [0, 0]


def test_celery_flushes_that_partition(redis_buffer, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 1, "PARTITIONS": 1}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(2))
    current_app.conf.task_always_eager = True
    try:
        record_hits(articles)
    finally:
        current_app.conf.task_always_eager = False

    assert slot_sums(articles) == dict.fromkeys(articles, 1)


def test_broker_that_is_away_does_not_fail_the_page(redis_buffer, settings, caplog):
    settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 1, "PARTITIONS": 1}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(2))
    with mock.patch.object(tasks.flush_hits, "apply_async", side_effect=OSError("no broker")):
        assert [hit.counted for hit in record_hits(articles)] == [True, True]

    assert "no broker" in caplog.text
