"""What receivers of signals get, and when."""

from __future__ import annotations

from unittest import mock

import pytest
from django.db import transaction
from django.dispatch import receiver
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.batches import Known, RecordResult
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.signals import hit_refused, hits_flushed
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

LOST = RecordResult(None, "unavailable")


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
    flush_hits()

    totals = {key: hits for _, _, found, _ in received for key, hits in found.items()}
    daily = {key: hits for *_, found in received for key, hits in found.items()}
    keys = [counter_key(article, counter="views") for article in articles]
    assert totals == dict(zip(keys, (5, 1, 1), strict=True))
    assert daily == {(key, day_of()): hits for key, hits in totals.items()}
    assert {sender for sender, *_ in received} == {type(get_buffer())}


def test_hits_flushed_is_sent_when_the_hits_are_in_the_tables(articles, received):
    flush_hits()

    assert received
    by_key = {counter_key(article, counter="views"): article for article in articles}
    for _, sums, totals, _ in received:
        assert totals.items() <= {key: sums[article] for key, article in by_key.items()}.items()


def test_hits_flushed_is_sent_by_the_flusher_that_wrote_the_batch_alone(articles, received):
    buffer = get_buffer()
    batches = [batch for p in buffer.partitions() if (batch := buffer.claim(p))]
    for batch in batches:
        assert flushing.apply(batch)  # Another flusher, which then dies.

    flush_hits()

    assert received == []
    assert slot_sums(articles) == dict(zip(articles, (5, 1, 1), strict=True))


def test_error_of_a_receiver_stops_no_flush(articles, received):
    def fail(**kwargs):
        raise RuntimeError("the search index is away")

    hits_flushed.connect(fail)
    try:
        flush_hits()
    finally:
        hits_flushed.disconnect(fail)

    assert slot_sums(articles) == dict(zip(articles, (5, 1, 1), strict=True))
    assert received


def test_empty_flush_sends_nothing(redis_buffer, received):
    flush_hits()

    assert received == []


@pytest.fixture
def article(buffer, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"repeat": "daily"}}}
    return Article.objects.create(title="Tea")


@pytest.fixture
def refused():
    """What hit_refused brought."""
    found = []

    @receiver(hit_refused)
    def keep(signal, **kwargs):
        found.append(kwargs)

    yield found
    hit_refused.disconnect(keep)


def by_browser():
    return RequestFactory(headers=BROWSER).get("/")


def test_hit_refused_says_what_was_refused_and_why(article, refused):
    bot, first, again = RequestFactory().get("/"), by_browser(), by_browser()
    for request in (bot, first, again):
        record_hit(article, request)

    common = {"sender": Article, "obj": article, "counter": "views"}
    assert refused == [
        {**common, "refusal": "bot", "request": bot},
        {**common, "refusal": "repeat", "request": again},
    ]


def test_hit_refused_waits_for_the_commit(article, refused):
    with transaction.atomic():
        record_hit(article, RequestFactory().get("/"))
        assert refused == []

    assert [found["refusal"] for found in refused] == ["bot"]


def test_hit_refused_is_not_sent_after_a_rollback(article, refused):
    with transaction.atomic():
        record_hit(article, RequestFactory().get("/"))
        transaction.set_rollback(True)

    assert refused == []


def test_hit_that_is_lost_is_not_refused(article, refused):
    with mock.patch.object(type(get_buffer()), "record", return_value=([LOST], Known())):
        assert record_hit(article, by_browser()).refusal == "unavailable"

    assert refused == []


def test_error_of_a_receiver_breaks_no_page(article, refused):
    def fail(**kwargs):
        raise RuntimeError("the log is full")

    hit_refused.connect(fail)
    try:
        assert record_hit(article, RequestFactory().get("/")).refusal == "bot"
    finally:
        hit_refused.disconnect(fail)


def test_no_objects_are_no_refusals(buffer, refused):
    assert record_hits([], by_browser()) == []
    assert refused == []
