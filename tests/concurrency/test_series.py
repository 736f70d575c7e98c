"""The hits of a day are right at every instant, while hits are recorded, flushed and compacted."""

from __future__ import annotations

import time

import pytest

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from django_hitcount.series import hits_by_day
from tests import children
from tests.app.models import Article
from tests.concurrency.board import Board
from tests.servers import WAIT_SECONDS

RECORDERS = 3
HITS = 1500
OBJECTS = 10
READINGS = 4
"""The least number of readings meanwhile."""


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["object", "queryset", "model", "site"])
def test_never_less_than_recorded_nor_more_nor_back(redis_buffer, kind):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(OBJECTS))
    source = {
        "object": articles[0],
        "queryset": Article.objects.filter(pk__gt=0),
        "model": Article,
        "site": None,
    }[kind]
    started, finished = Board(RECORDERS, OBJECTS), Board(RECORDERS, OBJECTS)
    done, readings = Board(1, 1), Board(1, 1)
    first_day = day_of()

    def count(board):
        return board.column(0) if kind == "object" else board.total()

    def record(row):
        n = 0
        while n < HITS // RECORDERS or readings.total() < READINGS:
            started.add(row, n % OBJECTS)
            record_hit(articles[n % OBJECTS])
            finished.add(row, n % OBJECTS)
            n += 1

    def forever(work):
        while not done.total():
            work()

    recorders = [children.fork(lambda row=row: record(row)) for row in range(RECORDERS)]
    workers = [
        children.fork(lambda work=work: forever(work))
        for work in (flush_hits, flush_hits, compact, compact)
    ]
    last = 0
    deadline = time.monotonic() + WAIT_SECONDS
    while recorders:
        assert time.monotonic() < deadline
        before = count(finished)
        total = sum(hits_by_day(source, first_day=first_day, last_day=day_of()).values())
        assert max(before, last) <= total <= count(started)
        last = total
        readings.add(0, 0)
        if children.has_ended(recorders[0]):
            recorders.pop(0)
    done.add(0, 0)
    assert [children.wait_for(pid) for pid in workers] == [0] * len(workers)

    assert sum(hits_by_day(source, first_day=first_day, last_day=day_of()).values()) == count(
        started
    )
    assert count(started) == count(finished)
