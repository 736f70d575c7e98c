"""Redis is stopped, killed or hangs while pages are served: no page fails, no hit is lost."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from unittest import mock

import pytest
from django.db import InterfaceError, OperationalError, transaction
from django.test import Client
from redis.connection import BlockingConnectionPool, ConnectionPool

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis.catching_up import CatchUp
from django_hitcount.buffers.redis.link import Link
from django_hitcount.buffers.redis.server import RedisServer, _limit_waits
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DeletedObject, HitSlot, MissedRecord
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.outages import FIRST_PAUSE_SECONDS, Breaker, missed_records
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.cache_alias import change_alias
from tests.concurrency.board import Board
from tests.faults.conftest import TIMEOUT_SECONDS, hanging
from tests.proxies import Proxy
from tests.redis_server import names_of
from tests.servers import HOST, Valkey, wait_until
from tests.tables import daily_sums, slot_sums
from tests.waits import waits_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def view(article: Article) -> int:
    """GET the article's page; returns the total it shows."""
    response = Client(headers=BROWSER).get(f"/articles/{article.pk}/")
    assert response.status_code == 200
    return int(response.content)


def test_hit_without_redis_goes_straight_into_the_slots(own_valkey, article):
    view(article)
    flush_hits()
    own_valkey.stop()

    assert [view(article) for _ in range(3)] == [2, 3, 4]
    assert slot_sums([article]) == daily_sums([article]) == {article: 4}


def test_totals_are_exact_as_soon_as_redis_is_back(own_valkey, article, caplog):
    """The running total that Redis kept over its absence knows nothing of the slots."""
    for _ in range(3):
        view(article)
    own_valkey.stop()
    for _ in range(4):
        view(article)
    own_valkey.start()
    wait_until(lambda: not get_buffer()._breaker.is_open or get_hits(article) == 7, "Redis")

    assert get_hits(article) == 7
    assert view(article) == 8
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 8}
    assert not MissedRecord.objects.exists()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_missed_hits_are_sent_later_if_the_database_is_away_when_redis_is_back(
    own_valkey, article, error
):
    own_valkey.stop()
    view(article)
    own_valkey.start()
    with mock.patch.object(missed_records, "read_oldest", side_effect=error) as read:
        wait_until(lambda: get_hits(article) and read.called, "Redis")
        assert view(article) == 2

    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 2}
    assert not MissedRecord.objects.exists()


def test_a_process_that_noticed_nothing_is_put_right_by_the_next_flush(own_valkey, article):
    view(article)
    own_valkey.stop()
    assert children.run(lambda: view(article)) == 0
    own_valkey.start()

    assert children.run(flush_hits) == 0
    get_buffer.cache_clear()
    assert get_hits(article) == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_every_page_answers_and_counts_once_while_redis_comes_and_goes(own_valkey, article, how):
    """Commands whose answer was lost may have been run; they are counted once all the same."""
    answered, done = Board(8, 1), Board(1, 1)

    def serve(row: int) -> None:
        while not done.total():
            view(article)
            answered.add(row, 0)

    servers = [children.fork(lambda row=row: serve(row)) for row in range(8)]
    for _ in range(3):
        seen = answered.total()
        wait_until(lambda seen=seen: answered.total() > seen + 200, "pages")
        own_valkey.stop(how)
        seen = answered.total()
        wait_until(lambda seen=seen: answered.total() > seen + 50, "pages without Redis")
        own_valkey.start()
        # Wait until all processes use Redis again.
        wait_until(lambda: own_valkey.connections() >= 8, "connections")
    done.add(0, 0)
    assert [children.wait_for(pid) for pid in servers] == [0] * 8
    flush_hits()

    assert slot_sums([article]) == daily_sums([article]) == {article: answered.total()}
    assert get_hits(article) == answered.total()


@pytest.mark.usefixtures("endless_pauses")
def test_hanging_redis_costs_one_short_timeout_and_then_nothing(own_valkey, article):
    view(article)
    with (
        hanging(own_valkey),
        mock.patch.object(
            RedisServer, "send_unguarded", autospec=True, side_effect=RedisServer.send_unguarded
        ) as run,
    ):
        with waits_for(TIMEOUT_SECONDS, 2 * TIMEOUT_SECONDS):
            view(article)
        assert run.call_count == 1
        for _ in range(5):
            view(article)
        assert run.call_count == 1
    own_valkey.resume()


def test_command_that_a_hanging_redis_runs_late_counts_once(own_valkey, article):
    """The answer is lost, the command is not: Redis finds it when it wakes up."""
    view(article)
    with hanging(own_valkey):
        view(article)
    assert MissedRecord.objects.filter(command_id__isnull=False).count() == 1
    own_valkey.resume()
    wait_until(lambda: own_valkey.calls("evalsha") >= 2, "the late command")
    flush_hits()

    assert get_hits(article) == 2
    assert slot_sums([article]) == daily_sums([article]) == {article: 2}
    assert not MissedRecord.objects.exists()


def test_command_that_redis_never_ran_is_counted_when_it_is_back(own_valkey, article):
    view(article)
    with hanging(own_valkey):
        view(article)
    own_valkey.stop(signal.SIGKILL)
    own_valkey.start()
    flush_hits()

    assert get_hits(article) == 2
    assert slot_sums([article]) == {article: 2}


def test_read_only_redis_counts_in_the_slots(own_valkey, article):
    own_valkey.ask("REPLICAOF", HOST, "1")

    assert view(article) == 1
    assert slot_sums([article]) == {article: 1}


def test_demoted_master_is_left_for_the_server_in_its_place(
    own_valkey, article, settings, tmp_path
):
    """After a failover, the old master may still answer on connections that are open."""
    proxy = Proxy(own_valkey.port)
    proxy.start()
    change_alias(settings, LOCATION=f"redis://{HOST}:{proxy.port}/0")
    view(article)
    flush_hits()
    (tmp_path / "b").mkdir()
    master = Valkey(tmp_path / "b")
    master.start()
    try:
        proxy.lead_to(master.port)
        own_valkey.ask("REPLICAOF", HOST, "1")
        assert view(article) == 2
        get_buffer()._breaker.try_now()
        assert view(article) == 3
        assert slot_sums([article]) == {article: 2}
        flush_hits()
        assert slot_sums([article]) == {article: 3}
    finally:
        proxy.stop()
        master.stop(signal.SIGKILL)


def test_demoted_master_of_redis_6_is_left(own_valkey, article):
    """It says so in the middle of the error of a script."""
    view(article)
    link = get_buffer().redis._idle[-1]
    text = "ERR Error running script (call to f_1): @user_script:4: -READONLY You can't write."
    link._handle_rejections([], [link._make_rejection(text)])

    assert not link.is_usable()
    assert view(article) == 2


def test_fork_that_python_does_not_know_of(own_valkey, article):
    """uWSGI forks without Python's hooks. The child needs a connection and numbers of its own."""
    view(article)
    pid = ctypes.PyDLL(None).fork()
    if not pid:
        code = 1
        try:
            for _ in range(3):
                record_hit(article)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0) == (pid, 0)
    for _ in range(3):
        record_hit(article)

    assert get_hits(article) == 7


def test_total_that_lacks_the_hits_of_an_earlier_run_is_not_kept(own_valkey, article):
    view(article)
    own_valkey.stop()
    own_valkey.start()
    with mock.patch.object(RedisServer, "send", side_effect=BufferUnavailable):
        get_hits(article)

    assert get_hits(article) == 1


def test_full_redis_counts_in_the_slots(own_valkey, article):
    own_valkey.ask("CONFIG", "SET", "maxmemory", "1")

    assert view(article) == 1
    assert slot_sums([article]) == {article: 1}


def test_full_redis_can_be_flushed(own_valkey, article):
    """Malformed fields and notes of missed hits included; then there is room again."""
    other = Article.objects.create(title="Coffee")
    view(article)
    with own_valkey.client() as client:
        names = names_of(client, counter_key(article, counter="views"))
    own_valkey.ask("HSET", names.pending, "rubbish", "x")
    own_valkey.ask("CONFIG", "SET", "maxmemory", "1")
    view(other)
    with suppress(ExceptionGroup):
        flush_hits()

    assert slot_sums([article, other]) == {article: 1, other: 1}
    assert own_valkey.ask("HVALS", names.malformed) == [b"x"]
    own_valkey.ask("CONFIG", "SET", "maxmemory", "0")
    flush_hits()
    assert not MissedRecord.objects.exists()
    assert get_hits([article, other]) == {article: 1, other: 1}


def test_page_sends_some_missed_hits_and_the_flush_the_rest(own_valkey, article):
    own_valkey.stop()
    with mock.patch.object(missed_records, "RECORDS_AT_A_TIME", 2):
        for _ in range(5):
            view(article)
        own_valkey.start()
        get_buffer()._breaker.try_now()
        view(article)
        assert MissedRecord.objects.count() == 3
        flush_hits()

    assert not MissedRecord.objects.exists()
    assert view(article) == 7


@pytest.mark.parametrize("step", ["before Redis is told", "after Redis was told"])
def test_process_is_killed_while_it_sends_missed_hits(own_valkey, article, step):
    view(article)
    with hanging(own_valkey):
        view(article)
    own_valkey.resume()
    target = (CatchUp, "_build_calls") if step.startswith("before") else (missed_records, "drop")
    with mock.patch.object(*target, lambda *args: children.die()):
        assert children.run(flush_hits) == -signal.SIGKILL
    flush_hits()

    assert record_hit(article).total == 3
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 3}


def test_page_in_a_transaction_leaves_the_news_to_its_hit(own_valkey, article):
    """It would lock the notes until the view ends."""
    view(article)
    own_valkey.stop()
    view(article)
    own_valkey.start()
    get_buffer()._breaker.try_now()
    with transaction.atomic():
        get_hits(article)
        record_hit(article)
        assert MissedRecord.objects.count() == 1

    assert not MissedRecord.objects.exists()
    assert get_hits(article) == 3


def test_object_deleted_after_an_answer_was_lost_gets_no_hits(own_valkey, article):
    view(article)
    with hanging(own_valkey):
        view(article)
    own_valkey.resume()
    get_buffer.cache_clear()  # Like another process, which has not noticed it.
    Article.objects.all().delete()
    flush_hits()

    assert not MissedRecord.objects.exists()
    assert not HitSlot.objects.exists()


def test_object_that_is_deleted_while_redis_is_away_is_forgotten_by_the_next_flush(
    own_valkey, article
):
    """What waits in Redis would put rows back, and a second sweep take those of a new object."""
    view(article)
    flush_hits()
    view(article)
    own_valkey.stop()
    article.delete()
    own_valkey.start()
    flush_hits()

    assert not HitSlot.objects.exists()
    assert not DeletedObject.objects.filter(is_forgotten=False).exists()


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_that_is_loading_leaves_no_answer_behind(own_valkey, article, protocol, settings):
    """The next command must not get the answer of the one before."""
    location = f"{settings.CACHES['hitcount']['LOCATION']}?protocol={protocol}"
    change_alias(settings, LOCATION=location)
    articles = [article, *Article.objects.bulk_create(Article(title=str(n)) for n in range(9))]
    record_hits(articles)
    ask, loading = Link._ask, [BufferUnavailable("Redis rejected a command: LOADING")]

    def answer(self, packed, number, replies):
        ask(self, packed, number, replies)
        if loading:
            replies[-number] = loading.pop()

    with mock.patch.object(Link, "_ask", answer):
        get_hits(articles)
    assert not loading
    get_buffer()._breaker.try_now()
    assert {hit.total for hit in record_hits(articles)} == {2}


def test_waits_for_sentinel_and_for_a_free_connection_are_limited(own_valkey, settings):
    sentinel = ConnectionPool(port=1, socket_timeout=5)
    pool = BlockingConnectionPool(port=own_valkey.port, timeout=20)
    pool.sentinel_manager = mock.Mock(sentinels=[mock.Mock(connection_pool=sentinel)])
    _limit_waits(pool, 0.25)

    assert pool.timeout == 0.25
    assert pool.connection_kwargs["socket_timeout"] == 0.25
    assert sentinel.connection_kwargs["socket_connect_timeout"] == 0.25
    assert sentinel.connection_kwargs["retry"].get_retries() == 0


def test_waits_are_short_if_no_setting_says_more(own_valkey, settings):
    change_alias(settings, OPTIONS={})

    assert get_buffer().redis.timeout_seconds == 0.25


def fail(breaker, *, seconds):
    breaker.report_failure(BufferUnavailable("away"), is_probe=True, seconds=seconds)


def seconds_paused(breaker) -> float:
    return breaker._paused_until - time.monotonic()


class TestBreaker:
    def test_many_failures_at_once_are_one(self):
        breaker = Breaker("Redis")
        guards = [breaker.guard() for _ in range(8)]
        for guard in guards:
            guard.__enter__()
        for guard in guards:
            guard.__exit__(BufferUnavailable, BufferUnavailable("away"), None)

        assert breaker._pause == FIRST_PAUSE_SECONDS

    def test_server_that_rejects_at_once_is_called_each_second(self):
        """Then a call costs a page nothing, and a server that is back is soon used again."""
        breaker = Breaker("Redis")
        for _ in range(6):
            fail(breaker, seconds=0.01)
            assert seconds_paused(breaker) <= 1

    def test_server_that_times_out_is_called_less_and_less(self):
        breaker = Breaker("Redis")
        pauses = []
        for _ in range(8):
            fail(breaker, seconds=0.25)
            pauses.append(breaker._pause)

        assert pauses == [0.5, 1, 2, 4, 8, 15, 15, 15]

    def test_processes_do_not_come_back_together(self):
        breakers = [Breaker("Redis") for _ in range(8)]
        for breaker in breakers:
            fail(breaker, seconds=0.01)

        pauses = [seconds_paused(breaker) for breaker in breakers]
        assert max(pauses) - min(pauses) > 0.01

    def test_call_from_before_the_failure_says_nothing(self):
        breaker = Breaker("Redis")
        earlier = breaker.guard()
        earlier.__enter__()
        with pytest.raises(BufferUnavailable), breaker.guard():
            raise BufferUnavailable("away")
        earlier.__exit__(None, None, None)

        assert breaker.is_open
        with pytest.raises(BufferUnavailable, match="not called again"), breaker.guard():
            pass

    def test_one_call_at_a_time_sees_whether_it_is_back(self):
        breaker = Breaker("Redis")
        with pytest.raises(BufferUnavailable), breaker.guard():
            raise BufferUnavailable("away")
        breaker.try_now()
        with breaker.guard() as is_probe:
            assert is_probe
            with pytest.raises(BufferUnavailable, match="not called again"), breaker.guard():
                pass

        assert not breaker.is_open
