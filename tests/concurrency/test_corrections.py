"""Corrections at once never take back more than was counted, also while hits are flushed."""

from __future__ import annotations

import datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection

from django_hitcount import corrections
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import Correction
from django_hitcount.exceptions import TooFewHits
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import record_hit
from django_hitcount.totals import get_total, hits_between
from tests import children
from tests.app.models import Article
from tests.concurrency.at_once import ask_at_once
from tests.concurrency.board import Board
from tests.sessions import wait_for_transactions_of_the_dead
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

HITS = 30
WAITING = 10
"""How many of these are still in the buffer."""

EACH = 3
CORRECTIONS = 16


def flush_and_compact_until_killed() -> None:
    while True:
        flush()
        compact()


def test_corrections_at_once_take_back_what_was_counted_and_no_more(
    buffer, user: User, monkeypatch
):
    monkeypatch.setattr(corrections, "PATIENCE_SECONDS", 30)
    article = Article.objects.create(title="Tea")
    day = day_of() - datetime.timedelta(days=1)
    record_hit(article, amount=HITS - WAITING, at=day)
    flush()
    record_hit(article, amount=WAITING, at=day)
    outcomes = Board(CORRECTIONS, 2)

    def take_back(number: int) -> None:
        try:
            correct_hits(article, -EACH, day=day, reason="A bot", user=user)
        except TooFewHits:
            outcomes.add(number, 1)
        else:
            outcomes.add(number, 0)

    connection.close()
    if connection.vendor != "sqlite":
        children.fork(flush_and_compact_until_killed)
    ask_at_once(take_back, requests=CORRECTIONS, processes=4)
    children.kill_all()
    wait_for_transactions_of_the_dead()

    assert (outcomes.column(0), outcomes.column(1)) == (HITS // EACH, CORRECTIONS - HITS // EACH)
    assert Correction.objects.count() == HITS // EACH
    assert get_total(article) == hits_between(article, day, day) == 0
    flush()
    assert slot_sums([article]) == daily_sums([article]) == {article: 0}
