"""
Redis forgets, goes back, swaps its databases or evicts keys, answers are lost, clocks differ.

Whatever the order, no hit counts twice, and none is lost that Redis has not lost.
"""

from __future__ import annotations

import datetime
import signal
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from unittest import mock

import pytest
import time_machine
from django.conf import settings
from django.db import connections
from django.test import override_settings
from django_redis.pool import ConnectionFactory
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from django_hitcount import outages
from django_hitcount.db.tables import MissedRecord
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.flushing import Flush, flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.doubts import no_notes
from tests.laws.machine import CRASHES, Machine, refresh_hits, run
from tests.laws.test_going_back import cache_at
from tests.proxies import Proxy
from tests.servers import Valkey
from tests.tables import daily_sums, slot_sums

NOON = datetime.datetime(2026, 10, 25, 11, tzinfo=datetime.UTC)
MOVES = [["restart", "go_back", "forget_all"], ["restart", "swap"], ["evict"]]
CLOCKS = [-3600, -30, -5, 0, 5, 30, 3600]
"""By how many seconds a clock differs. An hour: in autumn, without time zones."""

MOST_FLUSHES = 5
"""After so many at the latest, a flush has nothing left to do."""

PAUSES = ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS", "LONGEST_PAUSE_IF_SLOW_SECONDS")


ANSWERS = ARRIVES, LOST, NOT_RUN, LOST_AFTER_A_FLUSH = (
    "arrives",
    "lost",
    "request is lost",
    "lost after a flush",
)


class Losing(Machine):
    """
    Hits that were told to be counted are ``told``.

    Of these, ``kept`` cannot be lost: they are in the tables, or came after the last loss. Hits
    that were told not to be counted may be in the tables all the same: they are ``unsure``.
    """

    server: Valkey
    proxy: Proxy
    moves: list[str]
    """How Redis loses something: names of methods."""

    @initialize()
    def empty(self) -> None:
        self._all_arrives()
        alias = cache_at(self.proxy.port)
        # Its connections have ended, perhaps.
        ConnectionFactory._pools.pop(alias["LOCATION"], None)
        caches = {**settings.CACHES, "hitcount": alias}
        self.stack.enter_context(override_settings(CACHES=caches, USE_TZ=False))
        self.begin(PARTITIONS=1)
        self.server.ask("SAVE")
        for name in PAUSES:
            self.stack.enter_context(mock.patch.object(outages, name, 1e-9))
        self.clock = self.stack.enter_context(time_machine.travel(NOON))
        self.objs = Article.objects.bulk_create(Article(pk=n + 1, title=str(n)) for n in range(2))
        self.told = dict.fromkeys(self.objs, 0)
        self.unsure = dict.fromkeys(self.objs, 0)
        self.kept = dict.fromkeys(self.objs, 0)
        self.is_stale = self.has_lost = False

    @rule(
        chosen=st.lists(st.integers(0, 1), min_size=1, max_size=2, unique=True),
        answer=st.sampled_from(ANSWERS),
        place=st.integers(0, 99),
        data=st.data(),
    )
    def record(self, chosen, answer, place, data) -> None:
        """
        Then, before anybody catches up, Redis may lose something.

        After a loss, hits in doubt may be dropped. Of a command that ran in the other database,
        Redis knows nothing: docs/guarantees says so.
        """
        if "swap" in self.moves:
            answer = ARRIVES
        if answer == LOST_AFTER_A_FLUSH:
            self.proxy.lose(meanwhile=self._flush_in_a_thread)
        elif answer != ARRIVES:
            self.proxy.lose(is_run=answer == LOST)
        objs = [self.objs[n] for n in chosen]
        for obj, hit in zip(objs, record_hits(objs), strict=True):
            self.told[obj] += hit.counted
            self.kept[obj] += hit.counted and (answer == ARRIVES or not self.has_lost)
            self.unsure[obj] += not hit.counted
        self._all_arrives()
        if data.draw(st.booleans()):
            self.lose(place, data)

    @rule(
        place=st.none() | st.integers(0, 9),
        is_run=st.booleans(),
        knows_notes=st.booleans(),
        seconds=st.sampled_from(CLOCKS),
    )
    def flush(self, place, is_run, knows_notes, seconds) -> None:
        """A request or its answer may be lost. What is in doubt may have come too late for it."""
        if place is not None:
            self.proxy.lose(place, is_run=is_run)
        self.clock.shift(seconds)
        with nullcontext() if knows_notes else no_notes():
            self._flush()
        self.clock.shift(-seconds)
        self._all_arrives()

    @rule(step=st.sampled_from(sorted(CRASHES)), partition=st.just(0))
    def crash_while_flushing(self, step, partition) -> None:
        with suppress(BufferUnavailable):
            super().crash_while_flushing(step, partition)

    @rule()
    def take_snapshot(self) -> None:
        self.server.ask("SAVE")

    @rule(place=st.integers(0, 99), data=st.data())
    def lose(self, place, data) -> None:
        """Redis is restarted, and loses nothing or something, or loses it in the same run."""
        getattr(self, data.draw(st.sampled_from(self.moves)))(place)

    def restart(self, place) -> None:
        self.server.ask("SAVE")
        self._restart()

    def go_back(self, place) -> None:
        self._restart()
        self._keep_only_tables()

    def forget_all(self, place) -> None:
        self.server.ask("FLUSHALL")
        self._keep_only_tables()

    def swap(self, place) -> None:
        self.server.ask("SWAPDB", "0", "1")
        self._keep_only_tables()
        self.is_stale = True

    def evict(self, place) -> None:
        """Any one key. Hits are in hashes."""
        with self.server.client() as redis:
            names = sorted(redis.scan_iter())
            if names:
                name = names[place % len(names)]
                if redis.type(name) == b"hash":
                    self._keep_only_tables()
                redis.delete(name)
                self.is_stale = True

    @precondition(lambda self: self.is_stale)
    @rule()
    def refresh_hits(self) -> None:
        self._reset_totals()

    @rule()
    def read(self) -> None:
        """No invariant: who reads also delivers what Redis missed."""
        totals = get_hits(self.objs)
        is_complete = not MissedRecord.objects.exists()
        if self.is_stale:
            return
        for obj, total in totals.items():
            assert total <= self.told[obj] + self.unsure[obj], "ahead"
            assert total >= self.kept[obj] or not is_complete, "behind"

    @invariant()
    def tables_are_not_ahead(self) -> None:
        for sums in (slot_sums(self.objs), daily_sums(self.objs)):
            for obj, hits in sums.items():
                assert hits <= self.told[obj] + self.unsure[obj], "counted twice"

    def teardown(self) -> None:
        try:
            self._check_end()
        finally:
            super().teardown()

    def _check_end(self) -> None:
        assert any(flush_hits() == Flush() for _ in range(MOST_FLUSHES))
        self.tables_are_not_ahead()
        if self.is_stale:
            self._reset_totals()
        sums = slot_sums(self.objs)
        for obj, hits in sums.items():
            assert hits >= self.kept[obj], "lost"
        assert not MissedRecord.objects.exists()
        assert get_hits(self.objs) == sums

    def _reset_totals(self) -> None:
        with self.server.client() as redis:
            refresh_hits(redis)
        self.is_stale = False

    def _keep_only_tables(self) -> None:
        """What is not in the tables may be lost."""
        self.kept = slot_sums(self.objs)
        self.has_lost = True

    def _restart(self) -> None:
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.proxy.disconnect()

    def _all_arrives(self) -> None:
        self.proxy.accepts = self.proxy.rewrite = bytes

    def _flush(self) -> None:
        with suppress(BufferUnavailable, ExceptionGroup):
            flush_hits()

    def _flush_in_a_thread(self) -> None:
        self._flush()
        connections.close_all()


@pytest.fixture
def losing(tmp_path) -> Iterator[None]:
    Losing.server = Valkey(tmp_path)
    Losing.server.start()
    Losing.proxy = Proxy(Losing.server.port)
    Losing.proxy.start()
    yield
    Losing.proxy.stop()
    Losing.server.stop(signal.SIGKILL)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("losing")
@pytest.mark.parametrize("moves", MOVES, ids=" and ".join)
def test_no_hit_counts_twice_and_none_is_lost(moves):
    Losing.moves = moves
    run(Losing, max_examples=30)
