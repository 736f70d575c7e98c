"""Corrections at once never take back more than was counted, also while hits are flushed."""

from __future__ import annotations

import datetime
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from django_hitcount import corrections
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import Correction
from django_hitcount.exceptions import TooFewHits
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article
from tests.concurrency.at_once import ask_at_once
from tests.concurrency.board import Board
from tests.sessions import repeatable_read, wait_for_transactions_of_the_dead
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

HITS = 30
WAITING = 10
"""How many of these are still in the buffer."""

EACH = 3
CORRECTIONS = 16


def flush_and_compact_until_killed() -> None:
    while True:
        flush_hits()
        compact()


@pytest.mark.long
def test_corrections_at_once_take_back_what_was_counted_and_no_more(
    buffer, user: User, monkeypatch
):
    monkeypatch.setattr(corrections, "PATIENCE_SECONDS", 30)
    article = Article.objects.create(title="Tea")
    day = day_of() - datetime.timedelta(days=1)
    record_hit(article, amount=HITS - WAITING, at=day)
    flush_hits()
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
    assert get_hits(article) == get_hits(article, first_day=day, last_day=day) == 0
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 0}


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite commits nothing beside a transaction that reads"
)
@pytest.mark.parametrize("is_compacted", [False, True], ids=["in slots", "compacted"])
@pytest.mark.parametrize("does_compact", [False, True], ids=["", "then compacted"])
@pytest.mark.parametrize("is_second", [False, True], ids=["first", "second"])
class TestRepeatableRead:
    """A transaction that began before another correction does not see what that took back."""

    @pytest.fixture
    def day_of_hits(self, buffer, user, is_compacted, does_compact, is_second):
        """A day with 100 hits, in the slots that they were written to, or compacted."""
        self.article, self.user, self.does_compact = Article.objects.create(), user, does_compact
        if is_second:
            record_hit(self.article)
            self.take_back(1)
        record_hit(self.article, amount=100)
        flush_hits()
        if is_compacted:
            compact()

    def take_back(self, amount: int) -> None:
        correct_hits(self.article, -amount, day=day_of(), reason="A bot", user=self.user)

    def take_back_elsewhere(self, amount: int) -> None:
        """Take back hits in another session, and let a compaction move them."""

        def work() -> None:
            self.take_back(amount)
            if self.does_compact:
                compact()

        assert children.run(work) == 0

    def hits(self) -> int:
        hits = get_hits(self.article, first_day=day_of(), last_day=day_of())
        assert hits == get_hits(self.article)
        return hits

    def test_no_hit_is_taken_back_twice(self, day_of_hits):
        with (
            repeatable_read(),
            pytest.raises((TooFewHits, OperationalError)),
            transaction.atomic(),
        ):
            assert self.hits() == 100
            self.take_back_elsewhere(100)
            self.take_back(100)

        flush_hits()
        assert self.hits() == 0

    def test_the_rest_can_be_taken_back(self, day_of_hits):
        """On PostgreSQL only by the next transaction: the server rolls this one back."""
        with repeatable_read(), suppress(OperationalError), transaction.atomic():
            assert self.hits() == 100
            self.take_back_elsewhere(60)
            self.take_back(40)

        if connection.vendor == "postgresql":
            assert self.hits() == 40
            self.take_back(40)
        flush_hits()
        assert self.hits() == 0
