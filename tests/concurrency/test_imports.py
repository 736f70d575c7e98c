"""Imports are written and undone while objects move, hits come in, and processes are killed."""

from __future__ import annotations

import datetime
import random
import time

import pytest

from django_hitcount import import_hits, move_hits, record_hit, undo_import
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyVisitors, Import, ImportedHits
from django_hitcount.exceptions import ImportRefused, InvalidArgument
from django_hitcount.importing import pieces, running
from django_hitcount.importing.rows import SourceRow
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from tests.app.models import Article
from tests.concurrency.storm import compact_now_and_then, flush_all, flush_now_and_then
from tests.concurrency.victims import Victims
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

DAYS = [day_of() - datetime.timedelta(days=n) for n in range(2, 22)]


class Daily:
    """A source with hits and visitors of articles on each day."""

    name = "daily"

    def __init__(self, keys) -> None:
        self.keys = keys

    def rows(self, findings):
        for key in self.keys:
            for day in DAYS:
                yield SourceRow("here", key, "views", day, 7, 2)


def move_now_and_then(articles: list[Article]) -> None:
    one, other = random.sample(articles, 2)
    move_hits(one, to=other)
    time.sleep(0.01)


def undo_again() -> None:
    try:
        undo_import("daily")
    except InvalidArgument:
        time.sleep(0.01)


def test_undo_while_objects_move_takes_back_exactly_the_import(
    rule, redis, monkeypatch, hits_wait_for_all_locks
):
    rule("always", visitors=True)
    monkeypatch.setattr(running, "PIECE_SIZE", 10)
    monkeypatch.setattr(pieces, "PIECE_SIZE", 10)
    Article.objects.bulk_create(Article() for _ in range(6))
    articles = [*Article.objects.order_by("pk")]
    source = Daily([counter_key(article, counter="views")[:2] for article in articles])
    recorded = 0
    for _ in range(2):
        for article in articles:
            record_hit(article, amount=3, at=DAYS[1])
            recorded += 3
        import_hits(source)
        assert sum(get_hits(articles).values()) == recorded + 6 * 20 * 7
        moves = [lambda: move_now_and_then(articles)] * 2
        victims = Victims([*moves, undo_again, flush_now_and_then, compact_now_and_then])
        victims.start_all()
        while Import.objects.exists():
            victims.kill_due()
            time.sleep(0.002)
        victims.kill_all()
        flush_all()
        compact_hits()
        assert sum(get_hits(articles).values()) == recorded
        first, *others = articles
        for other in others:
            move_hits(other, to=first)  # A move that was killed may have left the hits of days.
        flush_hits()
        of_all = dict.fromkeys(others, 0) | {first: recorded}
        assert slot_sums(articles) == daily_sums(articles) == of_all
        assert not ImportedHits.objects.exists()
        assert not DailyVisitors.objects.exists()


def import_again(source: Daily) -> None:
    try:
        import_hits(source)
    except ImportRefused:  # Another process has continued it.
        time.sleep(0.01)


def test_an_import_by_several_who_are_killed_while_objects_move_is_exact(
    rule, redis, monkeypatch, hits_wait_for_all_locks
):
    rule("always", visitors=True)
    monkeypatch.setattr(running, "PIECE_SIZE", 3)
    Article.objects.bulk_create(Article() for _ in range(6))
    articles = [*Article.objects.order_by("pk")]
    source = Daily([counter_key(article, counter="views")[:2] for article in articles])
    get_hits(articles)
    works = [lambda: import_again(source)] * 2
    works += [lambda: move_now_and_then(articles), flush_now_and_then, compact_now_and_then]
    victims = Victims(works)
    victims.start_all()
    recorded = 0
    while not Import.objects.filter(is_open=None).exists():
        recorded += record_hit(random.choice(articles), at=DAYS[1]).counted
        victims.kill_due()
        time.sleep(0.002)
    victims.kill_all()
    flush_all()
    assert sum(get_hits(articles).values()) == recorded + 6 * 20 * 7
    assert sum(daily_sums(articles).values()) == recorded + 6 * 20 * 7
    assert sum(DailyVisitors.objects.values_list("count", flat=True)) == 6 * 20 * 2

    assert undo_import("daily") == 6 * 20 * 7
    assert sum(get_hits(articles).values()) == recorded
    assert sum(daily_sums(articles).values()) == recorded
    assert not DailyVisitors.objects.exists()
