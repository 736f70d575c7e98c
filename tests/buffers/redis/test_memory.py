"""What Redis keeps of an object does not grow with the days that have passed."""

from __future__ import annotations

import datetime

import pytest
import time_machine

from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from tests.app.models import Article
from tests.visiting import NOON, visit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

DAY = datetime.timedelta(days=1)
DAYS = 30
OBJECTS = 5
VISITORS = 3
MARGIN = 1.05
"""Which addresses share a key is a matter of chance."""


def let_a_day_pass(redis) -> None:
    """Bring the end of each key with a time limit nearer by a day."""
    for name in redis.scan_iter():
        left = redis.pttl(name)
        if left >= 0:
            redis.pexpire(name, int(left - DAY.total_seconds() * 1000))


def keys_and_bytes(redis) -> tuple[int, int]:
    names = [*redis.scan_iter()]
    return len(names), sum(redis.memory_usage(name, samples=0) for name in names)


@pytest.mark.parametrize("repeat", ["always", "daily"])
def test_month_of_visitors_takes_no_more_than_two_weeks(redis, redis_rule, repeat):
    """The same objects have visitors on each day, and so has one that is new on each day."""
    redis_rule(repeat, visitors=True, PARTITIONS=1)
    articles = Article.objects.bulk_create(Article() for _ in range(OBJECTS))
    used = []
    with time_machine.travel(NOON, tick=False) as clock:
        for _ in range(DAYS):
            for article in [*articles, Article.objects.create()]:
                visit(article, range(VISITORS))
            flush_hits()
            compact_hits()
            used.append(keys_and_bytes(redis))
            clock.shift(DAY)
            let_a_day_pass(redis)

    of_second_week, of_last_week = used[7:14], used[-7:]
    most_keys, most_bytes = (MARGIN * max(values) for values in zip(*of_second_week, strict=True))
    assert [of for of in of_last_week if of[0] > most_keys or of[1] > most_bytes] == []
