"""A slow view holds no lock on a counter; writers of one counter do not queue for one row."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article
from tests.tables import daily_sums, slot_sums

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis"),
]


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the database, not rows")
def test_slow_view_makes_no_other_wait(article, settings):
    """It has recorded its hit and goes on; others record, flush and compact meanwhile."""
    settings.HITCOUNT = {**settings.HITCOUNT, "SLOTS": 1}
    record_hit(article)

    with transaction.atomic():
        article.title = "changed by the view"
        article.save()
        record_hit(article)
        assert children.run(lambda: record_hit(article)) == 0
        assert children.run(flush_hits) == 0
        assert children.run(compact) == 0

    assert article.hits == 3


def test_slow_view_has_written_nothing_until_it_commits(article):
    with transaction.atomic():
        record_hit(article)
        assert slot_sums([article]) == {article: 0}

    flush_hits()
    assert slot_sums([article]) == {article: 1}


@pytest.mark.usefixtures("hits_wait_for_all_locks")
def test_writers_of_one_counter_at_once_lose_nothing(article):
    def record() -> None:
        for _ in range(50):
            assert record_hit(article).counted

    pids = [children.fork(record) for _ in range(8)]
    assert [children.wait_for(pid) for pid in pids] == [0] * 8
    flush_hits()

    assert slot_sums([article]) == daily_sums([article]) == {article: 400}
    assert article.hits == 400


@pytest.mark.usefixtures("hits_wait_for_all_locks")
def test_writers_and_compactors_at_once_lose_nothing(article):
    def record() -> None:
        for _ in range(60):
            assert record_hit(article).counted
            flush_hits()

    def compact_all_the_time() -> None:
        while HitSlot.objects.filter(counter="downloads").count() == 0:
            compact()

    compactors = [children.fork(compact_all_the_time) for _ in range(2)]
    recorders = [children.fork(record) for _ in range(4)]
    assert [children.wait_for(pid) for pid in recorders] == [0] * 4
    record_hit(article, counter="downloads")
    flush_hits()
    assert [children.wait_for(pid) for pid in compactors] == [0] * 2

    assert slot_sums([article]) == daily_sums([article]) == {article: 240}
