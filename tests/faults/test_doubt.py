"""
Commands in doubt: their answer was lost, and then Redis lost its memory, or nothing.

No clock can say whether their hits are in the tables already.
"""

from __future__ import annotations

import datetime
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.db import OperationalError, connection, connections

from django_hitcount.buffers import Buffer, get_buffer
from django_hitcount.db.tables import MissedRecord
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.doubts import no_notes
from tests.faults.conftest import hanging
from tests.proxies import Proxy
from tests.servers import HOST, Valkey, wait_until
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture
def articles() -> list[Article]:
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(5))


@pytest.fixture
def writer(own_valkey, settings) -> Iterator[Writer]:
    """A process that reaches Redis by a proxy of its own."""
    proxy = Proxy(own_valkey.port)
    proxy.start()
    at_server = settings.CACHES["hitcount"]["LOCATION"]
    change_alias(settings, LOCATION=f"redis://{HOST}:{proxy.port}/0")
    yield Writer(get_buffer(), proxy)
    change_alias(settings, LOCATION=at_server)
    proxy.stop()


class Writer:
    def __init__(self, buffer: Buffer, proxy: Proxy) -> None:
        self.buffer = buffer
        self.proxy = proxy

    def record(self, articles: list[Article]) -> None:
        with mock.patch("django_hitcount.recording.get_buffer", return_value=self.buffer):
            assert all(hit.counted for hit in record_hits(articles))

    def record_without_answer(
        self, articles: list[Article], meanwhile: Callable[[], object]
    ) -> None:
        """Redis runs the command, ``meanwhile`` happens, and the answer is lost."""

        def go_on() -> None:
            meanwhile()
            connections.close_all()

        self.proxy.lose(meanwhile=go_on)
        self.record(articles)
        assert MissedRecord.objects.exists()


@pytest.fixture
def use_server(writer, own_valkey, settings) -> None:
    """All others talk to the server itself."""
    change_alias(settings, LOCATION=f"redis://{HOST}:{own_valkey.port}/0")
    assert get_buffer() is not writer.buffer


@contextmanager
def notes_cannot_be_deleted() -> Iterator[None]:
    def fail(execute: Any, sql: str, *args: Any) -> Any:
        if sql.startswith("DELETE") and MissedRecord._meta.db_table in sql:
            raise OperationalError("server has gone away")
        return execute(sql, *args)

    with connection.execute_wrapper(fail):
        yield


def flush_until_done() -> None:
    def flushes() -> bool:
        with suppress(ExceptionGroup):
            flush_hits()
            return not MissedRecord.objects.exists()
        return False

    wait_until(flushes, "a flush")


def assert_each_has(articles: list[Article], hits: int) -> None:
    flush_until_done()
    expected = dict.fromkeys(articles, hits)
    assert slot_sums(articles) == daily_sums(articles) == expected
    assert get_hits(articles) == expected


def test_redis_that_keeps_all_never_ran_it(own_valkey, articles):
    """That the same hits of others were flushed shortly before says nothing."""
    record_hits(articles)
    flush_hits()
    with hanging(own_valkey):
        record_hits(articles)
    own_valkey.stop(signal.SIGKILL)
    own_valkey.start()

    assert_each_has(articles, 2)


def test_redis_that_keeps_all_never_ran_it_and_others_were_flushed_since(own_valkey, articles):
    record_hits(articles)
    with hanging(own_valkey):
        record_hits(articles)
    own_valkey.stop(signal.SIGKILL)
    own_valkey.start()
    with no_notes():
        record_hits(articles)
        flush_hits()

    assert_each_has(articles, 3)


@pytest.mark.usefixtures("use_server")
def test_redis_that_keeps_all_ran_it_and_was_flushed_and_restarted(writer, own_valkey, articles):
    writer.record(articles)
    writer.record_without_answer(articles, meanwhile=flush_hits)
    own_valkey.stop(signal.SIGKILL)
    own_valkey.start()

    assert_each_has(articles, 2)


def restart_empty(server: Valkey) -> None:
    server.ask("CONFIG", "SET", "appendonly", "no")
    server.stop(signal.SIGKILL)
    server.options = ()
    server.start()


LOSSES = {"restart": restart_empty, "FLUSHALL": lambda server: server.ask("FLUSHALL")}

BERLIN = ZoneInfo("Europe/Berlin")
CLOCKS = {
    "clocks agree": (datetime.datetime(2026, 10, 24, 12, tzinfo=BERLIN), 0),
    # A note allows for the timeout, which is long in tests.
    "clock of the flusher is behind": (datetime.datetime(2026, 10, 24, 12, tzinfo=BERLIN), -25),
    "clock of the flusher is ahead": (datetime.datetime(2026, 10, 24, 12, tzinfo=BERLIN), 25),
    # 2:59:55 is followed by 2:00:05 ...
    "hour is repeated": (datetime.datetime(2026, 10, 25, 2, 59, 55, tzinfo=BERLIN), 10),
    # ... and 1:59:55 by 3:00:05.
    "hour is left out": (datetime.datetime(2026, 3, 29, 1, 59, 55, tzinfo=BERLIN), 10),
}
"""When it happens, and how many seconds later the flush is."""


@pytest.mark.usefixtures("use_server")
@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize(("moment", "difference"), CLOCKS.values(), ids=CLOCKS)
class TestRedisThatLosesItsMemory:
    """What was flushed before Redis lost it is in the tables, and counts once."""

    @pytest.fixture(autouse=True)
    def clock(self, settings, moment) -> Iterator[time_machine.Traveller]:
        settings.USE_TZ = False
        with time_machine.travel(moment) as clock:
            yield clock

    def test_flush_came_before_the_note(
        self, writer, own_valkey, articles, lose, clock, difference
    ):
        def flush_by_another_clock() -> None:
            clock.shift(difference)
            flush_hits()
            clock.shift(-difference)

        writer.record(articles)
        writer.record_without_answer(articles, meanwhile=flush_by_another_clock)
        lose(own_valkey)

        assert_each_has(articles, 2)

    def test_clock_was_changed_between_the_flush_and_the_note(
        self, writer, own_valkey, articles, lose, clock, difference
    ):
        def flush_before() -> None:
            flush_hits()
            clock.shift(difference)

        writer.record(articles)
        writer.record_without_answer(articles, meanwhile=flush_before)
        lose(own_valkey)

        assert_each_has(articles, 2)

    def test_flush_came_after_the_note(self, writer, own_valkey, articles, lose, clock, difference):
        """The flusher had looked for notes before."""
        writer.record(articles)
        writer.record_without_answer(articles, meanwhile=lambda: None)
        clock.shift(difference)
        with no_notes():
            flush_until_done()
        lose(own_valkey)

        assert_each_has(articles, 2)


@pytest.mark.usefixtures("use_server")
def test_hits_that_come_after_a_command_is_sent_again_count(writer, own_valkey, articles):
    """What names a batch is not used again, even if the same command is the first one twice."""
    writer.record(articles)
    flush_hits()
    own_valkey.ask("FLUSHALL")
    writer.record_without_answer(articles, meanwhile=flush_hits)
    assert slot_sums(articles) == dict.fromkeys(articles, 2)
    own_valkey.ask("FLUSHALL")
    get_buffer().catch_up()
    record_hits(articles, amount=5)

    assert_each_has(articles, 7)


@pytest.mark.usefixtures("use_server")
def test_log_tells_once_what_is_dropped(writer, own_valkey, articles, caplog):
    """Also if several flushers find a note that is dropped, or if it cannot be deleted at first."""
    writer.record(articles)
    writer.record_without_answer(articles, meanwhile=flush_hits)
    restart_empty(own_valkey)

    with notes_cannot_be_deleted(), suppress(ExceptionGroup):
        flush_hits()
    assert_each_has(articles, 2)
    assert len([record for record in caplog.records if "in doubt" in record.message]) == 1
