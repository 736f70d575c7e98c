"""What one call stores of a visitor shares no time by which it could be linked."""

from __future__ import annotations

import datetime

import pytest
from django.test import RequestFactory

from django_hitcount.counters import days
from django_hitcount.db.tables import Admission, SeenVisitor
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)

OBJECTS = 40
HOUR_MILLISECONDS = 3600 * 1000
DAYS_MILLISECONDS = 3 * 24 * HOUR_MILLISECONDS


def count(objs, settings, repeat, *, visitors=False) -> None:
    """Record hits of one visitor at once, under a rule."""
    options = {"repeat": repeat, "visitors": visitors}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    record_hits(objs, RequestFactory(headers=BROWSER).get("/"))


@pytest.fixture
def articles(db):
    return [Article.objects.create(title=str(n)) for n in range(OBJECTS)]


def longest_addition(milliseconds: int) -> int:
    return min(milliseconds // days.LENGTHENING_SHARE, days.LONGEST_LENGTHENING_MILLISECONDS)


def milliseconds(redis) -> int:
    seconds, microseconds = redis.time()
    return seconds * 1000 + microseconds // 1000


def assert_spread(moments, within):
    """Whether moments are as far apart as random ones; wrong once in 10^15 times."""
    assert len(moments) == OBJECTS
    assert max(moments) - min(moments) > within / 4
    assert len(set(moments)) > OBJECTS * 3 / 4


@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        ("*:repeat:*", HOUR_MILLISECONDS),
        ("*:visitors:*", DAYS_MILLISECONDS),
        ("*:sketches_of:*", DAYS_MILLISECONDS),
    ],
)
def test_keys_of_one_call_end_apart_and_none_early(
    articles, redis, redis_buffer, settings, pattern, least
):
    before = milliseconds(redis)
    count(articles, settings, 3600, visitors=True)
    after, most = milliseconds(redis), least + longest_addition(least)

    ends = [redis.pexpiretime(name) for name in redis.keys(pattern)]
    assert_spread(ends, longest_addition(least))
    assert all(before + least <= end <= after + most for end in ends)


def test_hash_and_sketch_of_one_hit_expire_apart(articles, redis, redis_buffer, settings):
    apart = set()
    for article in articles:
        redis.flushdb()
        count([article], settings, 3600, visitors=True)
        ends = [redis.pexpiretime(*redis.keys(name)) for name in ("*:repeat:*", "*:visitors:*")]
        apart.add(ends[1] - ends[0])

    assert len(apart) > OBJECTS * 3 / 4


def test_rows_of_one_call_hold_no_time(articles, settings):
    before = datetime.datetime.now(tz=datetime.UTC).timestamp() * 1_000_000
    count(articles, settings, 3600)

    within = longest_addition(HOUR_MILLISECONDS) * 1000
    rows = [*Admission.objects.values_list("admitted_at", "expires_at")]
    assert_spread([begun for begun, _ in rows], within)
    assert_spread([end for _, end in rows], within)
    assert_spread([end - begun for begun, end in rows], within)
    assert all(begun <= before + 60_000_000 for begun, _ in rows)
    assert all(end >= before + (HOUR_MILLISECONDS - 1) * 1000 for _, end in rows)


def test_rows_of_one_call_are_in_no_order(articles, settings):
    count(articles, settings, "daily")
    pks = [*SeenVisitor.objects.order_by("content_type", "object_id").values_list("pk", flat=True)]

    assert_spread(pks, 2**62)
    assert pks != sorted(pks)


@pytest.mark.parametrize("least", [1, 1000, 60_000, 10**10])
def test_never_shorter_and_a_tenth_or_ten_minutes_longer_at_most(least):
    found = [days.lengthen(least) for _ in range(5000)]
    most = min(least // 10, 600_000)

    assert all(least <= value <= least + most for value in found)
    assert max(found) - min(found) >= most * 0.9
