"""Rankings while rows are written, folded and deleted: no number is ever wrong."""

from __future__ import annotations

import random

import pytest

from django_hitcount.counters.days import day_of
from django_hitcount.db import rankings, slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.transactions import in_transaction
from django_hitcount.maintenance.compaction import compact
from django_hitcount.rankings import popular
from tests import children
from tests.app.models import Article
from tests.concurrency.board import Board

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

OBJECTS = 40
READINGS = 200


def move(keys, today, chance):
    """Move hits of some counters between two slots, so that all sums stay as they are."""
    amounts = {key: chance.randint(1, 50) for key in chance.sample(keys, 5)}
    days = {(key, today): amount for key, amount in amounts.items()}
    first, second = sorted(chance.sample(range(1, 6), 2))

    def add():
        slots.add_totals(amounts, slot=first)
        slots.add_totals(negative(amounts), slot=second)
        slots.add_daily(days, slot=first)
        slots.add_daily(negative(days), slot=second)

    in_transaction(add, using="default", patience_seconds=60, repeatable=False)


def negative(amounts):
    return {key: -amount for key, amount in amounts.items()}


def test_no_number_is_wrong_while_compactions_run(db, monkeypatch):
    monkeypatch.setattr(rankings, "FEWEST_ROWS", 5)
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(OBJECTS))
    keys = [counter_key(article, counter="views") for article in articles]
    totals = {key: 1000 // (n // 2 + 1) for n, key in enumerate(keys)}
    today = day_of()
    in_order = sorted(keys, key=lambda key: (-totals[key], key.object_id))[:8]
    expected = [(key.object_id, totals[key]) for key in in_order]
    slots.add_totals(totals, slot=1)
    slots.add_daily({(key, today): hits for key, hits in totals.items()}, slot=1)
    done, compactions = Board(1, 1), Board(1, 1)

    def move_until_done():
        chance = random.Random(1)
        while not done.total():
            move(keys, today, chance)

    def compact_until_done():
        while not done.total():
            compactions.add(0, 0, compact().rows)

    def read():
        for _ in range(READINGS):
            for period in ({}, {"first_day": today, "last_day": today}):
                found = popular(Article, 8, **period)
                assert [(str(article.pk), article.hits) for article in found] == expected

    writers = [children.fork(move_until_done), children.fork(compact_until_done)]
    readers = [children.fork(read), children.fork(read)]
    try:
        assert [children.wait_for(pid) for pid in readers] == [0, 0]
    finally:
        done.add(0, 0)
    assert [children.wait_for(pid) for pid in writers] == [0, 0]
    assert compactions.total() > OBJECTS * 2
