"""Hits rain in while flushers and compactors are killed; nothing is lost or counted twice."""

from __future__ import annotations

import random
import time

import pytest

from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article
from tests.concurrency.board import Board
from tests.concurrency.victims import Victims
from tests.redis_server import run_id
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

RECORDERS = 16
HITS = 100_000
OBJECTS = 50
VICTIMS = {"flusher": 2, "compactor": 2}
FEWEST_KILLS = 100
SECONDS = 600
"""Far longer than it takes, even on a busy machine."""


def test_sixteen_recorders_and_dying_flushers_end_exact(redis, redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(OBJECTS))
    started, finished = Board(RECORDERS, OBJECTS), Board(RECORDERS, OBJECTS)
    done = Board(1, 1)

    def record(row: int) -> None:
        chance = random.Random(row)
        for _ in range(HITS // RECORDERS):
            # Some articles are much more popular than others.
            at = min(int(chance.paretovariate(0.5)) - 1, OBJECTS - 1)
            before = finished.column(at)
            started.add(row, at)
            hit = record_hit(articles[at])
            assert hit.counted
            assert before < hit.total <= started.column(at)
            finished.add(row, at)

    def read() -> None:
        """P4: never less than what was recorded before, never more than after, never back."""
        last = [0] * OBJECTS
        today = day_of()
        while not done.total():
            before = [finished.column(at) for at in range(OBJECTS)]
            totals = get_hits(articles)
            after = [started.column(at) for at in range(OBJECTS)]
            for at, article in enumerate(articles):
                assert max(before[at], last[at]) <= totals[article] <= after[at]
                last[at] = totals[article]
            at = random.randrange(OBJECTS)
            in_days = get_hits(articles[at], first_day=today, last_day=max(today, day_of()))
            assert last[at] <= in_days <= started.column(at)

    def expire() -> None:
        """Let running totals expire, much more often than they do, so that they are loaded."""
        run = run_id(redis)
        while not done.total():
            key = counter_key(random.choice(articles), counter="views")
            redis.delete(run_keys(key.partition(16), run).total(key.text))
            time.sleep(0.001)

    victims = Victims([flush_hits] * VICTIMS["flusher"] + [compact] * VICTIMS["compactor"])
    recorders = [children.fork(lambda row=row: record(row)) for row in range(RECORDERS)]
    watchers = [children.fork(read), children.fork(read), children.fork(expire)]
    victims.start_all()
    deadline = time.monotonic() + SECONDS
    while recorders and time.monotonic() < deadline:
        victims.kill_due()
        if children.has_ended(recorders[0]):
            recorders.pop(0)
        time.sleep(0.002)
    assert victims.kills >= FEWEST_KILLS  # All of them while hits rained in.
    done.add(0, 0)
    assert not recorders
    assert [children.wait_for(pid) for pid in watchers] == [0, 0, 0]
    victims.kill_all()
    flush_hits()

    recorded = {article: started.column(at) for at, article in enumerate(articles)}
    assert sum(recorded.values()) == HITS
    assert slot_sums(articles) == daily_sums(articles) == get_hits(articles) == recorded
    assert not redis.keys("hitcount:*:pending*")
    assert not redis.keys("hitcount:*:batch*")
    compact()
    assert slot_sums(articles) == daily_sums(articles) == recorded
    assert HitSlot.objects.count() == sum(total > 0 for total in recorded.values())
    print(f"\n{HITS} hits, {victims.kills} kills", end=" ")
