"""Sketches of visitors in Redis, and what is merged from the tables."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest
import time_machine

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import claiming
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.daily_visitors import read_days
from django_hitcount.db.tables import DailyVisitors
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_visitors
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.redis_server import sends
from tests.tables import slot_sums
from tests.visiting import DAY, NOON, is_about, request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)


def test_range_is_merged_after_redis_lost_its_sketches(redis, redis_rule):
    redis_rule(visitors=True, VISITOR_KEY_ROTATION="month")
    article = Article.objects.create(title="Tea")
    for n in range(3):
        visitors = range(20 * n, 20 * n + 50)
        visit(article, visitors, at=DAY + datetime.timedelta(days=n))
    flush_hits()
    redis.flushall()

    found = article.get_visitors(first_day=DAY, last_day=DAY + datetime.timedelta(days=2))
    assert (is_about(90, found), found.spans) == (True, 1)
    assert is_about(50, article.get_visitors(first_day=DAY, last_day=DAY))


@pytest.mark.parametrize("key_id", ["", "v1"])
def test_foreign_sketch_is_left_out(redis, redis_rule, key_id):
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    article.record_hit(request_of(1))
    (name,) = redis.keys("hitcount:*:sketches_of:*")
    (sketch,) = redis.smembers(name)
    *start, _, pk = sketch.split(b":")
    stranger = b":".join([*start, key_id.encode(), pk])
    redis.pfadd(stranger, "x", "y")
    redis.sadd(name, stranger)

    found = article.get_visitors(first_day=day_of(), last_day=day_of())
    assert found == (3 if key_id == "v1" else 1)


def test_what_redis_lost_is_not_lost(redis, redis_rule):
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    visit(article, range(10))
    flush_hits()
    redis.flushall()
    visit(article, range(5, 13))
    flush_hits()

    assert is_about(13, article.get_visitors(first_day=day_of(), last_day=day_of()))
    redis.flushall()
    assert is_about(13, article.get_visitors(first_day=day_of(), last_day=day_of()))


def test_left_over_batch_does_not_overwrite_what_the_table_has(redis, redis_rule):
    """A sketch is evicted between the claim of a flusher that died and the next flush."""
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    visit(article, range(20))
    flush_hits()
    article.record_hit(request_of(100))
    for partition in range(16):
        get_buffer().claim(partition)
    redis.delete(*redis.keys("*:visitors:*"))
    article.record_hit(request_of(101))
    flush_hits()

    assert DailyVisitors.objects.get().count in {20, 21, 22}
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) >= 20


def test_redis_that_went_back_in_time_is_merged(redis, redis_rule):
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    visit(article, range(5))
    (name,) = redis.keys("*:visitors:*")
    old, ttl = redis.dump(name), redis.pttl(name)
    visit(article, range(5, 20))
    flush_hits()
    redis.restore(name, ttl, old, replace=True)
    article.record_hit(request_of(100))
    flush_hits()

    assert is_about(21, DailyVisitors.objects.get().count)


def test_left_over_batch_is_merged_though_the_sketch_has_as_many_visitors(redis, redis_rule):
    """Redis went back in time after the claim of a flusher that died, and got others since."""
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    visit(article, range(5))
    (name,) = redis.keys("*:visitors:*")
    old, ttl = redis.dump(name), redis.pttl(name)
    visit(article, [5])
    flush_hits()
    visit(article, [100])
    for partition in range(16):
        get_buffer().claim(partition)
    redis.restore(name, ttl, old, replace=True)
    visit(article, [101, 102])
    flush_hits()

    assert DailyVisitors.objects.get().count == 8


def test_sketch_that_begins_after_the_claim_is_merged(redis, redis_rule):
    """Redis evicts the one before, and others come before the flusher reads it."""
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    visit(article, range(2))
    flush_hits()
    visit(article, [2])
    read = claiming.read

    def lose_and_read(*args):
        redis.delete(*redis.keys("*:visitors:*"))
        visit(article, [3, 4, 5])
        return read(*args)

    with mock.patch.object(claiming, "read", lose_and_read):
        flush_hits()

    assert DailyVisitors.objects.get().count == 5


def test_full_redis_is_flushed_though_a_sketch_is_to_be_merged(redis, redis_rule):
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    article.record_hit(request_of(1))
    flush_hits()
    redis.delete(*redis.keys("*:visitors:*"))
    article.record_hit(request_of(2))
    redis.config_set("maxmemory", 1)
    try:
        flush_hits()
    finally:
        redis.config_set("maxmemory", 0)

    assert DailyVisitors.objects.get().count == 2
    assert not redis.keys("*scratch*")


def test_what_is_no_sketch_does_not_keep_hits_from_the_tables(redis, redis_rule):
    redis_rule(visitors=True)
    article = Article.objects.create(title="Tea")
    article.record_hit(request_of(1))
    redis.set(redis.keys("*:visitors:*")[0], "somebody else's")
    flush_hits()

    assert slot_sums([article]) == {article: 1}


def test_list_of_a_hundred_is_one_round_trip_and_one_query(
    redis, redis_buffer, settings, django_assert_num_queries
):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
    record_hits(articles, request_of(1))

    get_visitors(articles)
    with sends() as sent, django_assert_num_queries(1):
        assert {*get_visitors(articles).values()} == {1}
    assert sent() == 1


@pytest.mark.parametrize(("objects", "trips"), [(20, 2), (60, 3)])
def test_list_of_merged_ranges_costs_no_query_more(
    redis, redis_rule, django_assert_num_queries, objects, trips
):
    """Only one round trip more for each hundred sketches."""
    redis_rule(visitors=True, VISITOR_KEY_ROTATION="never")
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(objects))
    days = [DAY - datetime.timedelta(days=n) for n in range(3)]
    for day in days:
        record_hits(articles, request_of(1), at=day)
    record_hits(articles[:1], request_of(2), at=DAY)
    flush_hits()
    redis.flushall()
    record_hits(articles, request_of(1), at=DAY)

    get_visitors(articles, first_day=days[-1], last_day=days[0])
    with sends() as sent, django_assert_num_queries(1):
        found = get_visitors(articles, first_day=days[-1], last_day=days[0])
    assert [found[article] for article in articles] == [2] + [1] * (objects - 1)
    assert {visitors.spans for visitors in found.values()} == {1}
    assert sent() == trips


@pytest.mark.parametrize(("rotation", "sketches"), [("day", 0), ("month", 3), ("never", 3)])
def test_sketches_that_cannot_be_merged_are_not_read(redis_rule, rotation, sketches):
    redis_rule(visitors=True, VISITOR_KEY_ROTATION=rotation)
    article = Article.objects.create(title="Tea")
    days = [DAY + datetime.timedelta(days=n) for n in range(3)]
    for day in days:
        visit(article, range(20), at=day)
    flush_hits()
    key = counter_key(article, counter="views")

    for start, day in enumerate(days):
        found = read_days([key], days[0], days[-1], merged_from=day).values()
        assert [is_about(20, row.visitors) for row in found] == [True] * 3
        assert sum(row.sketch is not None for row in found) == max(sketches - start, 0)


def test_days_before_keys_rotated_daily_are_merged(redis, redis_rule, django_assert_num_queries):
    redis_rule(visitors=True, VISITOR_KEY_ROTATION="month")
    article = Article.objects.create(title="Tea")
    for n in range(3):
        visit(article, range(20), at=DAY + datetime.timedelta(days=n))
    redis_rule(visitors=True, VISITOR_KEY_ROTATION="day")
    for n in range(3, 5):
        visit(article, range(20), at=DAY + datetime.timedelta(days=n))
    flush_hits()
    redis.flushall()

    with django_assert_num_queries(1):
        found = article.get_visitors(first_day=DAY, last_day=DAY + datetime.timedelta(days=4))
    assert (is_about(60, found), found.spans) == (True, 3)


class TestMonth:
    """What Redis keeps of visitors lasts three days, however long an object has visitors."""

    def let_a_day_pass(self, redis):
        """And an hour: random minutes are added to the times to live."""
        for key in redis.scan_iter("*"):
            left = redis.pttl(key)
            if left >= 0:
                redis.pexpire(key, left - 25 * 3600 * 1000)

    @pytest.mark.parametrize("flushes", [True, False])
    def test_keys_and_bytes_are_bounded(self, redis, redis_rule, flushes):
        redis_rule("daily", visitors=True, PARTITIONS=1)
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
        sizes = []
        for day in range(30):
            with time_machine.travel(NOON + datetime.timedelta(days=day), tick=False):
                new = Article.objects.create(title=f"new {day}")
                for visitor in range(3):
                    record_hits([*articles, new], request_of(visitor))
                if flushes:
                    flush_hits()
                found = {key: redis.memory_usage(key) for key in redis.keys("*")}
                about_visitors = {
                    key: size
                    for key, size in found.items()
                    if not key.endswith((b"pending", b"runs"))
                }
                sizes.append((len(about_visitors), sum(about_visitors.values())))
            self.let_a_day_pass(redis)

        for of_day, of_first in zip(zip(*sizes[10:], strict=True), sizes[5], strict=True):
            assert max(of_day) <= 1.1 * of_first
        for kind in ("sketches_of", "merged_sketches"):
            sets = redis.keys(f"hitcount:*:{kind}:*")
            assert sets
            assert max(redis.scard(name) for name in sets) <= 4
