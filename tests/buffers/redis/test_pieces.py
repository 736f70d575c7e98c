"""More hits than one round trip takes are recorded in pieces."""

from __future__ import annotations

from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from django_hitcount import get_hits, hits_by_day, record_hits, refresh_hits
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.maintenance.flushing import flush_hits
from tests.app.models import Article

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_buffer")]


@pytest.fixture
def articles(db):
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(600))


def before_the_second(act):
    """Call ``act`` before the second piece is recorded, which has 100 hits."""
    record = RedisBuffer.record

    def act_then_record(self, hits, *args):
        if len(hits) == 100:
            act(self)
        return record(self, hits, *args)

    return mock.patch.object(RedisBuffer, "record", act_then_record)


def test_totals_are_right_if_a_flush_begins_between_two(articles):
    def claim(buffer):
        for partition in [*buffer.partitions()]:
            buffer.claim(partition)

    record_hits(articles)
    refresh_hits()
    with before_the_second(claim):
        assert {hit.total for hit in record_hits(articles)} == {2}

    assert {*get_hits(articles).values()} == {2}
    flush_hits()
    assert {*get_hits(articles).values()} == {2}


def test_hits_of_earlier_ones_are_not_reported_as_lost(articles, caplog):
    with before_the_second(mock.Mock(side_effect=OperationalError("away"))):
        hits = record_hits(articles)

    assert [hit.counted for hit in hits] == [True] * 500 + [False] * 100
    assert {hit.refusal for hit in hits[500:]} == {"unavailable"}
    assert {hit.total for hit in hits} == {0, 1}
    assert sum(get_hits(articles).values()) == 500
    assert "100 of 600 hits are not counted: away" in caplog.text


def test_nothing_is_counted_if_the_first_one_fails(articles):
    with mock.patch.object(RedisBuffer, "_group", side_effect=OperationalError("away")):
        hits = record_hits(articles)

    assert {hit.refusal for hit in hits} == {"unavailable"}
    assert sum(get_hits(articles).values()) == 0


@pytest.mark.parametrize("partitions", [1, 64])
def test_the_days_of_the_site_have_all_models(articles, partitions, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": partitions}
    users = User.objects.bulk_create(User(username=str(n)) for n in range(50))
    record_hits([*articles[:50], *users])
    before = hits_by_day(None, days=1)
    flush_hits()

    assert [*before.values()] == [100]
    assert hits_by_day(None, days=1) == before
