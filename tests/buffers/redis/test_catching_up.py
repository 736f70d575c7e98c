"""What becomes of hits in doubt: Redis may have run their command, or lost what it knew."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import pytest

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import catching_up
from django_hitcount.buffers.redis.catching_up import LOST, CommandState, Doubt, _knows_all
from django_hitcount.buffers.redis.link import Link
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.db import ledger
from django_hitcount.db.ledger import Applied
from django_hitcount.db.tables import MissedRecord
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.outages.missed_records import CommandId, MissedHits
from django_hitcount.recording import record_hit, record_new_hits
from tests.tables import slot_sums
from tests.visiting import refused_today, request_of

RUN = "0123456789ab"
G, OTHER = f"{RUN}:a:1", f"{RUN}:b:1"
DOUBT = Doubt(MissedHits(1, [], None), CommandId("7", 5, RUN), 3, [])
ELSEWHERE = {(4, G): Applied(99), (3, "other:a:1"): Applied(99), (3, f"{RUN}c:a:1"): Applied(99)}
"""What the ledger has of other partitions and runs."""


@pytest.mark.parametrize("elsewhere", [{}, ELSEWHERE])
@pytest.mark.parametrize(
    ("known", "last_batch", "in_ledger", "knows_all"),
    [
        # No hits have come in this run, or Redis has lost all of them before a flusher had any.
        ("-", 0, {}, True),
        # A flusher may have hits that Redis has lost.
        ("-", 0, {G: 0}, False),
        ("-", 0, {G: 5}, False),
        # No flusher has any hits.
        (G, 0, {}, True),
        (G, 0, {G: 0}, True),
        # Redis is level with the tables, or ahead of them.
        (G, 5, {G: 5}, True),
        (G, 6, {G: 5}, True),
        (G, 6, {G: 0}, True),
        # The table was emptied.
        (G, 6, {}, True),
        # Redis went back to a state from before a batch.
        (G, 4, {G: 5}, False),
        (G, 0, {G: 1}, False),
        # Redis lost everything once, and began another generation.
        (G, 6, {G: 5, OTHER: 0}, False),
        (G, 6, {OTHER: 0}, False),
        (G, 0, {OTHER: 9}, False),
        # Redis has lost a part.
        (LOST, 0, {}, False),
        (LOST, 6, {G: 5}, False),
        (LOST, 6, {G: 5, OTHER: 5}, False),
        # Somebody else has written in place of what Redis knew.
        ("", 0, {}, None),
        ("", 6, {G: 5}, None),
    ],
)
def test_whether_redis_knows_all(elsewhere, known, last_batch, in_ledger, knows_all):
    rows = {(3, generation): Applied(number) for generation, number in in_ledger.items()}
    found = CommandState(
        known, Applied(last_batch), is_set_aside=False, last_command=0, run_id="now"
    )

    assert _knows_all(DOUBT, found, {**rows, **elsewhere}) == knows_all


@pytest.mark.parametrize(
    ("last", "in_ledger", "is_set_aside", "run_id", "knows_all"),
    [
        (Applied(5, 1), Applied(5, 1), False, "now", True),
        (Applied(5, 1), Applied(5, 1), True, "now", True),
        # Redis went back to a state from before the claim, and claimed other hits as this batch.
        (Applied(5, 1), Applied(5, 2), False, "now", False),
        (Applied(5, 1), Applied(5, 2), True, RUN, False),
        # It may turn out that Redis did, when a flusher has applied the batch.
        (Applied(5, 1), Applied(4, 7), True, "now", None),
        # A server does not go back in its current run.
        (Applied(5, 1), Applied(4, 7), True, RUN, True),
        # The tables are from a backup.
        (Applied(5, 1), Applied(4, 7), False, "now", True),
    ],
)
def test_whether_the_tables_have_what_redis_claimed(
    last, in_ledger, is_set_aside, run_id, knows_all
):
    found = CommandState(G, last, is_set_aside=is_set_aside, last_command=0, run_id=run_id)

    assert _knows_all(DOUBT, found, {(3, G): in_ledger}) is knows_all


@contextmanager
def in_doubt(*, ran):
    """The answers to commands are lost; Redis runs them, or never gets them."""
    exchange = Link.exchange

    def send_and_lose(link, commands, replies):
        if ran:
            exchange(link, commands, [])
        raise TimeoutError

    with mock.patch.object(Link, "exchange", send_and_lose):
        yield
    get_buffer.cache_clear()  # With a breaker that has not opened.


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.django_db(transaction=True)
def test_repeat_in_doubt_that_counts_no_refusal_counts_none_later(redis_rule, article, key, ran):
    """That the tables have refused it is sent to Redis when that is back."""
    redis_rule("daily")
    request, hit = request_of(1), NewHits(key, day_of(), 1, counts_refusal=False)
    with in_doubt(ran=ran):
        assert record_hit(article, request).counted
    with in_doubt(ran=ran):
        assert record_new_hits([article], [hit], request)[0].refusal == "repeat"
    assert MissedRecord.objects.filter(command_id__isnull=False).count() == 2

    flush_hits()
    assert refused_today() == {}
    assert slot_sums([article]) == {article: 1}


@pytest.mark.django_db(transaction=True)
class TestHitsInDoubt:
    @pytest.fixture(autouse=True)
    def hits(self, article):
        record_hit(article)
        flush_hits()
        record_hit(article)

    def lose_answer(self, article, *, ran):
        with in_doubt(ran=ran):
            record_hit(article, amount=10)
        assert MissedRecord.objects.count() == 1

    def assert_each_counts(self, article, hits):
        for _ in range(2):
            flush_hits()
        assert slot_sums([article]) == {article: hits}
        assert not MissedRecord.objects.exists()

    @pytest.mark.parametrize("ran", [True, False])
    def test_redis_has_lost_nothing(self, article, ran, caplog):
        self.lose_answer(article, ran=ran)

        self.assert_each_counts(article, 12)
        assert "dropped" not in caplog.text

    @pytest.mark.parametrize("ran", [True, False])
    @pytest.mark.parametrize("is_flushed", [True, False])
    def test_redis_has_lost_everything(self, redis, article, key, ran, is_flushed, caplog):
        """Its hits may be in the tables."""
        self.lose_answer(article, ran=ran)
        if is_flushed:
            self.flush_without_catching_up(key)
        redis.flushall()

        self.assert_each_counts(article, (1 + is_flushed) + 10 * (ran and is_flushed))
        assert caplog.text.count("10 hits in doubt are dropped") == 1

    @pytest.mark.parametrize("name", ["pending", "sequence", "epoch", "runs"])
    @pytest.mark.parametrize("ran", [True, False])
    def test_redis_has_lost_a_key(self, redis, article, names, ran, name):
        """Never twice; what Redis knew is not lost."""
        self.lose_answer(article, ran=ran)
        redis.delete(getattr(names, name))

        lost = {"pending": 1 + 10 * ran, "sequence": 10 * (not ran)}.get(name, 0)
        self.assert_each_counts(article, 12 - lost)

    @pytest.mark.parametrize("name", ["pending", "sequence"])
    @pytest.mark.parametrize("ran", [True, False])
    def test_somebody_else_writes_a_value_in_its_place(self, redis, article, names, ran, name):
        """The first flush moves it away, and the second one decides, as if the key were lost."""
        self.lose_answer(article, ran=ran)
        redis.set(getattr(names, name), "somebody else's")

        lost = {"pending": 1 + 10 * ran, "sequence": 10 * (not ran)}[name]
        self.assert_each_counts(article, 12 - lost)

    @pytest.mark.parametrize("name", ["pending", "batch", "sequence"])
    def test_somebody_else_writes_a_value_before_the_first_hit(self, redis, article, names, name):
        redis.flushall()
        ledger.LastBatch.objects.all().delete()
        self.lose_answer(article, ran=False)
        redis.rpush(getattr(names, name), "somebody else's")

        self.assert_each_counts(article, 11)

    @pytest.mark.parametrize("name", ["batch", "sequence", "epoch", "runs"])
    @pytest.mark.parametrize("ran", [True, False])
    def test_a_key_is_lost_while_a_batch_is_set_aside(self, redis, article, names, key, ran, name):
        self.lose_answer(article, ran=ran)
        get_buffer().claim(key.partition(16))
        redis.delete(getattr(names, name))

        lost = {"batch": 1 + 10 * ran, "sequence": 10 * (not ran)}.get(name, 0)
        self.assert_each_counts(article, 12 - lost)

    def flush_without_catching_up(self, key):
        from django_hitcount.maintenance.flushing import flush_partition

        flush_partition(get_buffer(), key.partition(16))

    def test_redis_goes_back_to_when_it_had_just_run_it(self, redis, article, names, key, caplog):
        """Its hits are in the tables, and nobody is told that they are not."""
        self.lose_answer(article, ran=True)
        snapshot = {name: redis.dump(name) for name in (names.pending, names.sequence)}
        self.flush_without_catching_up(key)
        for name, value in snapshot.items():
            redis.restore(name, 0, value, replace=True)

        self.assert_each_counts(article, 12)
        assert "dropped" not in caplog.text

    def test_another_flusher_writes_a_batch_between_the_questions(self, article, key, caplog):
        """The ledger is then ahead of what Redis said, though Redis is not behind."""
        self.lose_answer(article, ran=False)
        read_runs = ledger.read_runs

        def flush_and_read(*args, **kwargs):
            self.flush_without_catching_up(key)
            return read_runs(*args, **kwargs)

        with mock.patch.object(catching_up.ledger, "read_runs", flush_and_read):
            flush_hits()
        self.assert_each_counts(article, 12)
        assert "dropped" not in caplog.text

    def test_another_flusher_opens_the_generation_between_the_questions(
        self, redis, article, key, caplog
    ):
        redis.flushall()
        ledger.LastBatch.objects.all().delete()
        self.lose_answer(article, ran=False)
        read_runs = ledger.read_runs

        def record_flush_and_read(*args, **kwargs):
            with mock.patch.object(catching_up.CatchUp, "deliver_oldest"):
                record_hit(article)
            self.flush_without_catching_up(key)
            return read_runs(*args, **kwargs)

        with mock.patch.object(catching_up.ledger, "read_runs", record_flush_and_read):
            flush_hits()
        self.assert_each_counts(article, 12)
        assert "dropped" not in caplog.text

    def test_redis_loses_everything_between_the_questions(self, redis, article, caplog):
        """The script asks what Redis knows again. The next flush decides."""
        self.lose_answer(article, ran=False)
        read_runs = ledger.read_runs

        def lose_and_read(*args, **kwargs):
            redis.flushall()
            return read_runs(*args, **kwargs)

        with mock.patch.object(catching_up.ledger, "read_runs", lose_and_read):
            flush_hits()
        assert MissedRecord.objects.count() == 1
        self.assert_each_counts(article, 1)
        assert caplog.text.count("10 hits in doubt are dropped") == 1
