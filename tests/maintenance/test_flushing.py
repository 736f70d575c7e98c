"""What a flush takes, and what it does when something goes wrong."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, OperationalError, transaction

from django_hitcount.buffers import get_buffer
from django_hitcount.db import slots, sql
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyHitSlot, HitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import Flush, flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests.answers import failing_at_first, lost_commit_answer
from tests.app.models import Article
from tests.cache_alias import NOWHERE, change_alias
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(redis_buffer) -> Article:
    return Article.objects.create(title="Tea")


def partition_of(article: Article) -> int:
    return counter_key(article, counter="views").partition(16)


def test_flush_says_what_it_did(article):
    other = Article.objects.create(title="Coffee")
    record_hits([article, other], amount=3)

    done = flush_hits()

    assert (done.counters, done.hits, done.malformed) == (2, 6, ())
    assert done.batches in {1, 2}
    assert flush_hits() == Flush()


def test_batch_lands_in_one_slot_other_than_0(article):
    record_hit(article)
    record_hit(article, counter="downloads")
    flush_hits()

    used = {*HitSlot.objects.values_list("slot", flat=True)}
    used |= {*DailyHitSlot.objects.values_list("slot", flat=True)}
    assert len(used) == 1
    assert 0 not in used


def test_flush_in_bounded_statements(redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(700))
    record_hits(articles)

    with mock.patch.object(sql, "ROWS_PER_STATEMENT", 10):
        flush_hits()

    assert slot_sums(articles) == daily_sums(articles) == dict.fromkeys(articles, 1)


def test_two_flushers_of_one_batch_apply_it_once(article):
    """The second finds the first's row in the ledger, whichever of them settles."""
    record_hit(article)
    buffer = get_buffer()
    partition = partition_of(article)

    first, second = buffer.claim(partition), buffer.claim(partition)
    assert replace(first, is_left_over=True) == second
    assert [flushing.apply(first), flushing.apply(second)] == [True, False]
    assert [buffer.settle(first), buffer.settle(second)] == [True, False]
    assert slot_sums([article]) == {article: 1}


def test_late_flusher_does_not_settle_a_newer_batch(article):
    record_hit(article)
    buffer = get_buffer()
    partition = partition_of(article)
    old = buffer.claim(partition)
    flush_hits()
    record_hit(article)
    new = buffer.claim(partition)

    assert flushing.apply(old) is False
    assert buffer.settle(old) is False
    assert buffer.claim(partition) == replace(new, is_left_over=True)
    flush_hits()
    assert slot_sums([article]) == {article: 2}


def test_one_flush_takes_what_a_dead_flusher_left_and_what_came_since(article):
    record_hit(article)
    get_buffer().claim(partition_of(article))
    record_hit(article, amount=4)

    done = flush_hits()

    assert (done.batches, done.hits) == (2, 5)
    assert slot_sums([article]) == {article: 5}


def test_lost_commit_answer_counts_once(article):
    """COMMIT happened, and its answer did not arrive: the repeat finds the ledger."""
    record_hit(article)
    with lost_commit_answer():
        flush_hits()

    assert slot_sums([article]) == daily_sums([article]) == {article: 1}


def test_deadlock_is_tried_again(article):
    record_hit(article)
    with failing_at_first(slots, "add_totals", OperationalError("deadlock"), times=3):
        assert flush_hits().hits == 1

    assert slot_sums([article]) == {article: 1}


def test_batch_that_fails_for_long_is_left_and_raised(article, monkeypatch):
    other = next(
        a
        for a in Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
        if partition_of(a) != partition_of(article)
    )
    record_hits([article, other])
    monkeypatch.setattr(flushing, "PATIENCE_SECONDS", 0.02)
    add = slots.add_totals

    def fails(amounts, **kwargs):
        if counter_key(article, counter="views") in amounts:
            raise OperationalError("locked")
        add(amounts, **kwargs)

    with mock.patch.object(slots, "add_totals", fails), pytest.raises(ExceptionGroup) as raised:
        flush_hits()

    partition = partition_of(article)
    assert raised.value.exceptions[0].__notes__ == [f"while flushing partition {partition}"]
    assert slot_sums([article, other]) == {article: 0, other: 1}
    assert get_hits(article) == 1
    flush_hits()
    assert slot_sums([article, other]) == {article: 1, other: 1}


def test_other_integrity_errors_are_raised(article):
    record_hit(article)

    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("column hits")),
        pytest.raises(ExceptionGroup),
    ):
        flush_hits()

    assert get_hits(article) == 1


def test_flush_within_a_transaction_is_refused(article):
    """It could be rolled back after the batch is gone from Redis."""
    record_hit(article)
    with transaction.atomic(), pytest.raises(ExceptionGroup) as raised:
        flush_hits()
    with pytest.raises(ExceptionGroup) as raised_without_autocommit:
        flush_without_autocommit()

    assert "durable" in str(raised.value.exceptions[0])
    assert "Autocommit is off" in str(raised_without_autocommit.value.exceptions[0])
    assert get_hits(article) == 1
    flush_hits()
    assert slot_sums([article]) == {article: 1}


def flush_without_autocommit():
    transaction.set_autocommit(False)
    try:
        flush_hits()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


def test_command_says_what_went_wrong(article):
    record_hit(article)
    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("column hits")),
        pytest.raises(CommandError, match=r"column hits \(while flushing partition \d+\)"),
    ):
        call_command("flush_hits")


def test_flush_of_a_dead_redis_says_so(settings, redis_buffer):
    change_alias(settings, LOCATION=NOWHERE)

    with pytest.raises(BufferUnavailable, match=r"cannot be reached.*127\.0\.0\.1:1"):
        flush_hits()


def test_no_partition_is_left_when_there_are_fewer(settings, redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(60))
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 40}
    record_hits(articles)
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 2}

    flush_hits()

    assert slot_sums(articles) == dict.fromkeys(articles, 1)
