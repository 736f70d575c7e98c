"""Requests of one visitor at the same time, from many threads of many processes."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from django_hitcount.status import get_refused_hits
from tests.app.models import Article, Page, Photo
from tests.browsers import BROWSER
from tests.concurrency.at_once import ask_at_once
from tests.concurrency.board import Board
from tests.tables import daily_sums, slot_sums

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hits_wait_for_all_locks"),
]

PROCESSES = 8
REQUESTS = 100


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_a_hundred_requests_of_one_visitor_count_once(buffer, settings, repeat):
    options = {"repeat": repeat, "visitors": True}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    objs = [
        Article.objects.create(title="Tea"),
        Photo.objects.create(),
        Page.objects.create(path="é"),
    ]
    # The keys of today are there, as they are at any other time of the day.
    record_hits([Article.objects.create(title="other")], request_of_one())
    flush_hits()
    counted = Board(REQUESTS, 1)

    def ask(number: int) -> None:
        hits = record_hits(objs, request_of_one())
        assert {hit.refusal for hit in hits} <= {None, "repeat"}
        counted.add(number, 0, sum(hit.counted for hit in hits))

    ask_at_once(ask, requests=REQUESTS, processes=PROCESSES)
    flush_hits()

    assert counted.total() == len(objs)
    assert slot_sums(objs) == daily_sums(objs) == dict.fromkeys(objs, 1)
    assert [obj.get_visitors(first_day=day_of(), last_day=day_of()) for obj in objs] == [1, 1, 1]
    (row,) = get_refused_hits(first_day=day_of(), last_day=day_of())
    assert (row.refusal, row.hits) == ("repeat", (REQUESTS - 1) * len(objs))


def request_of_one():
    return RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR="2001:db8::1")
