"""Requests of one address at the same time, from many threads of many processes."""

from __future__ import annotations

import pytest

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from django_hitcount.status import get_refused_hits
from tests.app.models import Article, Photo
from tests.concurrency.at_once import ask_at_once
from tests.concurrency.board import Board
from tests.tables import daily_sums, slot_sums
from tests.visitors.test_address_limit import request_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hits_wait_for_all_locks"),
]

PROCESSES = 5
REQUESTS = 50
LIMIT = 20


@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("repeat", [3600, "daily", "always"])
def test_fifty_requests_of_one_address_count_up_to_its_limit(buffer, settings, repeat, known):
    options = {"repeat": repeat, "visitors": True, "per_address": LIMIT}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    objs = [Article.objects.create(title="Tea"), Photo.objects.create()]
    # The keys of today are there, as they are at any other time of the day.
    record_hits([Article.objects.create(title="other")], request_of(0))
    for visitor in range(known):
        record_hits(objs, request_of(1000 + visitor))
    flush_hits()
    counted = Board(REQUESTS, 1)

    def ask(number: int) -> None:
        hits = record_hits(objs, request_of(number))
        assert {hit.refusal for hit in hits} <= {None, "address_limit"}
        counted.add(number, 0, sum(hit.counted for hit in hits))

    ask_at_once(ask, requests=REQUESTS, processes=PROCESSES)
    flush_hits()

    assert counted.total() == (LIMIT - known) * len(objs)
    assert slot_sums(objs) == daily_sums(objs) == dict.fromkeys(objs, LIMIT)
    assert all(
        LIMIT - 1 <= obj.get_visitors(first_day=day_of(), last_day=day_of()) <= LIMIT
        for obj in objs
    )
    (row,) = get_refused_hits(first_day=day_of(), last_day=day_of())
    assert row.refusal == "address_limit"
    assert row.hits == (REQUESTS + known - LIMIT) * len(objs)
