"""What is dropped from Redis because the tables have changed."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import visitors
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.counters.days import day_of
from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyVisitors
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.numbers import read_numbers
from tests.app.models import Article
from tests.visiting import visit

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 20_000
"""More keys than Lua can pass as arguments to a function."""


def test_numbers_of_many_objects_are_dropped_in_one_call(redis, redis_buffer):
    objects = [(5, str(n)) for n in range(MANY)]
    server = get_buffer().redis

    def fill(link):
        names = run_keys(3, link.run_id)
        return [("HSET", names.kept_visitors_of(*of), "f", "1") for of in objects]

    server.send_to_run(fill)
    before = redis.dbsize()
    server.send_to_run(lambda link: [visitors.discard_kept(3, objects, link.run_id)])

    assert before - redis.dbsize() == MANY


def test_page_meanwhile_keeps_no_visitors_of_a_deleted_object(redis, redis_rule):
    redis_rule("daily", visitors=True)
    article, today = Article.objects.create(), day_of()
    visit(article, [1, 2], at=today - datetime.timedelta(days=2))
    flush_hits()
    key = counter_key(article, counter="views")
    week = Number(key, today - datetime.timedelta(days=6), today, True)
    drop, discard = visitors.drop_sketches, type(get_buffer()).discard_totals

    def show_page(step):
        def with_page(*args, **options):
            read_numbers([week], on_page=True)
            step(*args, **options)
            read_numbers([week], on_page=True)

        return with_page

    DailyVisitors.objects.all().delete()
    with (
        mock.patch.object(visitors, "drop_sketches", show_page(drop)),
        mock.patch.object(type(get_buffer()), "discard_totals", show_page(discard)),
    ):
        get_buffer().discard_objects([key[:2]])

    assert int(read_numbers([week], on_page=True)[week]) == 0
