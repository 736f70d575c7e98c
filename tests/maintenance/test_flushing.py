from __future__ import annotations

import datetime
import uuid
from dataclasses import replace
from unittest import mock

import pytest
from celery import current_app
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import IntegrityError, OperationalError, transaction
from django.test import RequestFactory
from django.utils import timezone
from django_redis import get_redis_connection

from django_hitcount import signals
from django_hitcount.buffers import get_buffer
from django_hitcount.db import slots, upserts
from django_hitcount.db.counted_objects import counter_key
from django_hitcount.db.tables import DailyHitSlot, FlushedBatch, HitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import Flush, flush
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.tasks import flush_hits
from django_hitcount.totals import get_total
from tests import redis_server
from tests import settings as test_settings
from tests.answers import lost_commit_answer
from tests.app.models import Article, Plain
from tests.browsers import BROWSER
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(redis_buffer) -> Article:
    return Article.objects.create(title="Tea")


def names_of(article, counter="views"):
    """The keys of the article's partition, and its field."""
    key = counter_key(article, counter)
    return redis_server.names_of(get_redis_connection("hitcount"), key), key


def test_flush_says_what_it_did(article):
    other = Article.objects.create(title="Coffee")
    record_hits([article, other], amount=3)

    done = flush()

    assert (done.counters, done.hits, done.malformed) == (2, 6, ())
    assert done.batches in {1, 2}
    assert flush() == Flush()


def test_batch_lands_in_one_slot_other_than_0(article):
    record_hit(article)
    record_hit(article, counter="downloads")
    flush()

    used = {*HitSlot.objects.values_list("slot", flat=True)}
    used |= {*DailyHitSlot.objects.values_list("slot", flat=True)}
    assert len(used) == 1
    assert 0 not in used


def test_flush_in_bounded_statements(redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(700))
    record_hits(articles)

    with mock.patch.object(upserts, "ROWS_PER_STATEMENT", 10):
        flush()

    assert slot_sums(articles) == daily_sums(articles) == dict.fromkeys(articles, 1)


def test_two_flushers_of_one_batch_apply_it_once(article):
    """The second finds the first's row in the ledger, whoever settles."""
    record_hit(article)
    buffer = get_buffer()
    partition = names_of(article)[1].partition(16)

    first, second = buffer.claim(partition), buffer.claim(partition)
    assert replace(first, is_left_over=True) == second
    assert [flushing.apply(first), flushing.apply(second)] == [True, False]
    assert [buffer.settle(first), buffer.settle(second)] == [True, False]
    assert slot_sums([article]) == {article: 1}


def test_late_flusher_does_not_settle_a_newer_batch(article):
    record_hit(article)
    buffer = get_buffer()
    partition = names_of(article)[1].partition(16)
    old = buffer.claim(partition)
    flush()
    record_hit(article)
    new = buffer.claim(partition)

    assert flushing.apply(old) is False
    assert buffer.settle(old) is False
    assert buffer.claim(partition) == replace(new, is_left_over=True)
    flush()
    assert slot_sums([article]) == {article: 2}


def test_one_flush_takes_what_a_dead_flusher_left_and_what_came_since(article):
    record_hit(article)
    get_buffer().claim(names_of(article)[1].partition(16))
    record_hit(article, amount=4)

    done = flush()

    assert (done.batches, done.hits) == (2, 5)
    assert slot_sums([article]) == {article: 5}


def test_lost_commit_answer_counts_once(article):
    """COMMIT happened, and its answer did not arrive: the repeat finds the ledger."""
    record_hit(article)
    with lost_commit_answer():
        flush()

    assert slot_sums([article]) == daily_sums([article]) == {article: 1}


def test_deadlock_is_tried_again(article):
    record_hit(article)
    add, errors = slots.add_totals, [OperationalError("deadlock")] * 3

    def deadlock(*args, **kwargs):
        if errors:
            raise errors.pop()
        add(*args, **kwargs)

    with mock.patch.object(slots, "add_totals", deadlock):
        assert flush().hits == 1

    assert slot_sums([article]) == {article: 1}


def test_batch_that_fails_for_long_is_left_and_raised(article, monkeypatch):
    other = next(
        a
        for a in Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
        if names_of(a)[1].partition(16) != names_of(article)[1].partition(16)
    )
    record_hits([article, other])
    monkeypatch.setattr(flushing, "PATIENCE_SECONDS", 0.02)
    add = slots.add_totals

    def fails(amounts, **kwargs):
        if names_of(article)[1] in amounts:
            raise OperationalError("locked")
        add(amounts, **kwargs)

    with mock.patch.object(slots, "add_totals", fails), pytest.raises(ExceptionGroup) as raised:
        flush()

    partition = names_of(article)[1].partition(16)
    assert raised.value.exceptions[0].__notes__ == [f"while flushing partition {partition}"]
    assert slot_sums([article, other]) == {article: 0, other: 1}
    assert get_total(article) == 1
    flush()
    assert slot_sums([article, other]) == {article: 1, other: 1}


def test_other_integrity_errors_are_raised(article):
    record_hit(article)

    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("column hits")),
        pytest.raises(ExceptionGroup),
    ):
        flush()

    assert get_total(article) == 1


def test_flush_within_a_transaction_is_refused(article):
    """It could be rolled back after the batch is gone from Redis."""
    record_hit(article)
    with transaction.atomic(), pytest.raises(ExceptionGroup) as raised:
        flush()
    with pytest.raises(ExceptionGroup) as raised_without_autocommit:
        flush_without_autocommit()

    assert "durable" in str(raised.value.exceptions[0])
    assert "Autocommit is off" in str(raised_without_autocommit.value.exceptions[0])
    assert get_total(article) == 1
    flush()
    assert slot_sums([article]) == {article: 1}


def flush_without_autocommit():
    transaction.set_autocommit(False)
    try:
        flush()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


def test_ledger_is_pruned_even_if_a_partition_fails(article, monkeypatch):
    add_to_ledger([8, 9])
    record_hit(article)
    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("x")),
        pytest.raises(ExceptionGroup),
    ):
        flush()

    assert ages_in_ledger() == [8]


def test_command_says_what_went_wrong(article):
    record_hit(article)
    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("column hits")),
        pytest.raises(CommandError, match=r"column hits \(while flushing partition \d+\)"),
    ):
        call_command("flush_hits")


def test_ledger_is_pruned_after_seven_days_but_for_the_last_batch(article):
    """Whatever a Redis that goes back in time offers again is at most that one."""
    add_to_ledger([30, 8, 6, 0])
    add_to_ledger([30, 20, 9])
    flush()

    assert ages_in_ledger() == [0, 6, 9]


def add_to_ledger(days):
    """Batches of a generation of their own, flushed so many days ago."""
    generation = uuid.uuid4().hex
    FlushedBatch.objects.bulk_create(
        FlushedBatch(
            id=uuid.uuid4(),
            partition=3,
            generation=generation,
            number=number,
            flushed_at=timezone.now() - datetime.timedelta(days=day),
        )
        for number, day in enumerate(sorted(days, reverse=True))
    )


def ages_in_ledger():
    return sorted((timezone.now() - b.flushed_at).days for b in FlushedBatch.objects.all())


def test_flush_of_a_dead_redis_says_so(settings, redis_buffer):
    settings.CACHES = {
        **settings.CACHES,
        "hitcount": {**settings.CACHES["hitcount"], "LOCATION": "redis://127.0.0.1:1/0"},
    }

    with pytest.raises(BufferUnavailable, match=r"cannot be reached.*127\.0\.0\.1:1"):
        flush()


def test_no_partition_is_left_when_there_are_fewer(settings, redis_buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(60))
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 40}
    record_hits(articles)
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 2}

    flush()

    assert slot_sums(articles) == dict.fromkeys(articles, 1)


class TestMalformed:
    """What is no hit is set aside and reported; the hits beside it are flushed."""

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            (b"rubbish", b"1"),
            (b"x:views:1", b"1"),
            (b"5:Views:1", b"1"),
            (b"5:views:" + b"x" * 256, b"1"),
            (b"5:views:\xff\xfe", b"1"),
            (b"5:views:a\0b", b"1"),
            (b"5:views:7", b"many"),
            (b"5:views:7", b"1.5"),
            (b"5:views:7", b"99999999999999999999"),
            (b"999999:views:7", b"1"),
            (b"99999999999999999999:views:7", b"1"),
            (b"05:views:7", b"1"),
            (b" 5:views:7", b"1"),
            (b"5:views:7", b"9223372036854775807"),
            (b"-1:views:7", b"1"),
        ],
    )
    def test_field_is_set_aside_and_the_rest_is_flushed(
        self, redis, article, caplog, capsys, field, value
    ):
        record_hit(article)
        names, _ = names_of(article)
        redis.hset(names.pending, field, value)

        call_command("flush_hits")

        assert slot_sums([article]) == daily_sums([article]) == {article: 1}
        assert redis.hgetall(names.malformed) == {field + b"#0": value}
        assert "malformed" in caplog.text
        assert repr(field) in capsys.readouterr().err
        assert flush() == Flush()

    @pytest.mark.parametrize(
        "field",
        [b"5:views:2026-13-01:7", b"5:views:20260101:7", b"5:views:7", b"9999:views:2026-01-01:7"],
    )
    def test_daily_field(self, redis, article, field):
        record_hit(article)
        names, _ = names_of(article)
        redis.hset(names.pending_daily, field, 1)

        assert flush().malformed == (field,)
        assert daily_sums([article]) == {article: 1}
        assert redis.hkeys(names.malformed) == [field + b"#0"]

    def test_another_spelling_of_a_field_takes_no_hits_away(self, redis, article):
        names, key = names_of(article)
        record_hit(article, amount=5)
        redis.hset(names.pending, "0" + key.text, 1)

        assert flush().malformed == (b"0" + key.text.encode(),)
        assert slot_sums([article]) == {article: 5}

    def test_total_that_is_no_number_is_loaded_anew(self, redis, article):
        names, key = names_of(article)
        record_hit(article)
        redis.set(names.total(key.text), "many")

        assert record_hit(article).total == 2
        flush()
        assert slot_sums([article]) == {article: 2}

    def test_hits_recorded_over_a_malformed_value_count(self, redis, article):
        names, key = names_of(article)
        redis.hset(names.pending, key.text, "many")

        assert record_hit(article).total == 1
        flush()
        assert slot_sums([article]) == daily_sums([article]) == {article: 1}
        assert redis.hgetall(names.malformed) == {f"{key.text}#0".encode(): b"many"}

    def test_nothing_set_aside_is_overwritten(self, redis, article):
        names, _ = names_of(article)
        for value in (b"one", b"two"):
            redis.hset(names.pending, "rubbish", value)
            flush()

        assert sorted(redis.hvals(names.malformed)) == [b"one", b"two"]

    def test_hits_of_a_removed_model_are_set_aside(self, redis, article):
        """Its content type is gone, which the foreign key would not allow."""
        plain = Plain.objects.create(name="x")
        record_hits([plain, article])
        key = names_of(plain)[1]
        ContentType.objects.get_for_model(Plain).delete()
        ContentType.objects.clear_cache()

        done = flush()

        assert done.malformed[0] == key.text.encode()
        assert slot_sums([article]) == {article: 1}


STRANGERS = {
    "text": lambda redis, key: redis.set(key, "rubbish"),
    "bytes": lambda redis, key: redis.set(key, b"\xff\xfe\n:"),
    "name in another spelling": lambda redis, key: redis.set(key, "x:007"),
    "name with a large number": lambda redis, key: redis.set(key, "x:" + 30 * "9"),
    "largest number": lambda redis, key: redis.set(key, 2**63 - 1),
    "list": lambda redis, key: redis.rpush(key, "rubbish"),
    "set": lambda redis, key: redis.sadd(key, "rubbish"),
    "stream": lambda redis, key: redis.xadd(key, {"a": 1}),
}


@pytest.mark.long
@pytest.mark.skipif(test_settings.DATABASE != "sqlite", reason="Redis alone is concerned")
class TestKeysOfSomebodyElse:
    """Whatever stands where ours should: no page fails, each hit counts once, all is flushed."""

    NAMES = (
        *("pending", "pending_daily", "pending_refused", "pending_visitors"),
        *("batch", "batch_daily", "batch_refused", "batch_visitors"),
        *("batch_id", "epoch", "sequence", "runs", "malformed", "merged_sketches"),
    )

    @pytest.fixture(autouse=True)
    def counters(self, settings, article):
        views = {"repeat": "daily", "visitors": True}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": views}}

    def visit(self, article, client):
        """A visitor comes, and comes again."""
        request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{client}")
        hits = [record_hit(article, request) for _ in range(2)]
        assert [hit.refusal for hit in hits] == [None, "repeat"]
        return hits[-1].total

    @pytest.mark.parametrize("kind", STRANGERS)
    @pytest.mark.parametrize("name", [*NAMES, "total"])
    def test_before_and_between_hits(self, redis, article, name, kind):
        names, key = names_of(article)
        place = names.total(key.text) if name == "total" else getattr(names, name)
        STRANGERS[kind](redis, place)
        is_total = name == "total" and kind == "largest number"

        assert is_total or get_total(article) == 0
        assert self.visit(article, 1) == 1
        redis.delete(place)
        STRANGERS[kind](redis, place)
        lost = 1 if name in ("pending", "pending_daily") else 0
        assert is_total or get_total(article) in (1, 1 - lost)
        assert self.visit(article, 2) in (2, 2 - lost)

        for _ in range(2):
            flush()
        expected = {article: 2 - (name == "pending")}
        assert slot_sums([article]) == expected
        assert daily_sums([article]) == {article: 2 - (name == "pending_daily")}
        self.visit(article, 3)
        flush()
        assert slot_sums([article]) == {article: expected[article] + 1}
        assert not redis.exists(*names.pendings, *names.batches)

    @pytest.mark.parametrize("kind", ["list", "text"])
    def test_while_a_batch_is_set_aside(self, redis, article, kind, caplog):
        self.visit(article, 1)
        names, key = names_of(article)
        get_buffer().claim(key.partition(16))
        for place in (names.batch_id, names.batch_refused, names.pending, names.epoch):
            redis.delete(place)
            STRANGERS[kind](redis, place)

        assert get_total(article) == 1
        flush()
        assert slot_sums([article]) == daily_sums([article]) == {article: 1}
        assert get_total(article) == 1
        assert "not ours" in caplog.text


class TestFlushThreshold:
    @pytest.fixture
    def flushed_early(self, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 3, "PARTITIONS": 1}
        partitions = []

        def receiver(partition, **kwargs):
            partitions.append(partition)

        with mock.patch.object(signals.partition_full, "receivers", []):
            signals.partition_full.connect(receiver)
            yield partitions

    def test_partition_that_grows_full_asks_for_a_flush_once(self, redis_buffer, flushed_early):
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(10))
        asked = []
        for article in articles:
            record_hit(article)
            record_hit(article)
            asked.append(len(flushed_early))

        assert asked == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
        flush()
        record_hits(articles)
        assert flushed_early == [0, 0]

    def test_celery_flushes_that_partition(self, redis_buffer, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 1, "PARTITIONS": 1}
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(2))
        current_app.conf.task_always_eager = True
        try:
            record_hits(articles)
        finally:
            current_app.conf.task_always_eager = False

        assert slot_sums(articles) == dict.fromkeys(articles, 1)

    def test_broker_that_is_away_does_not_fail_the_page(self, redis_buffer, settings, caplog):
        settings.HITCOUNT = {**settings.HITCOUNT, "FLUSH_THRESHOLD": 1, "PARTITIONS": 1}
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(2))
        with mock.patch.object(flush_hits, "apply_async", side_effect=OSError("no broker")):
            assert [hit.counted for hit in record_hits(articles)] == [True, True]

        assert "no broker" in caplog.text
