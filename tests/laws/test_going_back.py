"""Redis may go back in time between any two steps: hits that are left count once."""

from __future__ import annotations

import signal
from unittest import mock

import pytest
from django.conf import settings
from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance import flushing
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from django_hitcount.series import hits_by_day
from tests.app.models import Article
from tests.laws.machine import Machine, run
from tests.proxies import KeepingProxy
from tests.servers import HOST, Valkey
from tests.tables import daily_sums, slot_sums


def cache_at(port: int) -> dict[str, object]:
    return {**settings.CACHES["hitcount"], "LOCATION": f"redis://{HOST}:{port}/0"}


class GoingBack(Machine):
    """
    Hits have numbers, and reach the tables in their order.

    So those of an object that the tables have are the first ones of those that are left.
    """

    server: Valkey
    proxy: KeepingProxy

    @initialize()
    def empty(self) -> None:
        own = {"hitcount": cache_at(self.server.port), "behind": cache_at(self.proxy.port)}
        self.stack.enter_context(override_settings(CACHES={**settings.CACHES, **own}))
        self.begin(REDIS="behind")
        self.behind = get_buffer()
        self.begin(REDIS="hitcount")
        assert isinstance(self.behind, RedisBuffer)
        assert get_buffer() is not self.behind
        self.objs = Article.objects.bulk_create(Article(pk=n + 1, title=str(n)) for n in range(3))
        self.left: dict[Article, list[int]] = {obj: [] for obj in self.objs}
        self.hits = 0
        self.asleep: list[tuple[flushing.Batch, dict[Article, list[int]]]] = []
        self.take_snapshot()

    @rule(chosen=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    def record(self, chosen) -> None:
        objs = [self.objs[n] for n in chosen]
        hits = record_hits(objs)
        for obj in objs:
            self.hits += 1
            self.left[obj].append(self.hits)
        assert [hit.total for hit in hits] == [len(self.left[obj]) for obj in objs]

    @rule(chosen=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    def record_behind_a_proxy(self, chosen) -> None:
        """The proxy of a process that does not notice when the server restarts."""
        with mock.patch("django_hitcount.recording.get_buffer", return_value=self.behind):
            self.record(chosen)

    @rule()
    def take_snapshot(self) -> None:
        self.server.ask("SAVE")
        self.kept = {obj: list(hits) for obj, hits in self.left.items()}

    @rule()
    def restart(self) -> None:
        """Hits of the snapshot that are not in the tables are back, also after a FLUSHALL."""
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self._keep_only_tables()
        for obj, hits in self.left.items():
            hits += [hit for hit in self.kept[obj] if hit not in hits]

    @rule()
    def forget_all(self) -> None:
        """In the same run."""
        self.server.ask("FLUSHALL")
        self._keep_only_tables()

    def _keep_only_tables(self) -> None:
        in_tables = slot_sums(self.objs)
        self.left = {obj: hits[: in_tables[obj]] for obj, hits in self.left.items()}

    @rule(partition=st.integers(0, 1))
    def claim_and_fall_asleep(self, partition) -> None:
        batch = get_buffer().claim(partition)
        if batch:
            in_tables = slot_sums(self.objs)
            taken = {
                obj: self.left[obj][in_tables[obj] :][
                    : batch.totals.get(counter_key(obj, counter="views"), 0)
                ]
                for obj in self.objs
            }
            self.asleep.append((batch, taken))

    @precondition(lambda self: self.asleep)
    @rule(place=st.integers(0, 9))
    def wake_up(self, place) -> None:
        """Write what it has read, unless another flusher did; also what Redis lost since."""
        batch, taken = self.asleep.pop(place % len(self.asleep))
        in_tables = slot_sums(self.objs)
        if flushing.flush_batch(get_buffer(), batch).batches:
            for obj, hits in taken.items():
                before, after = self.left[obj][: in_tables[obj]], self.left[obj][in_tables[obj] :]
                self.left[obj] = [*before, *hits, *(hit for hit in after if hit not in hits)]

    @invariant()
    def totals_are_exact(self) -> None:
        assert get_hits(self.objs) == {obj: len(hits) for obj, hits in self.left.items()}

    @invariant()
    def days_are_exact(self) -> None:
        today = day_of()
        obj = self.objs[0]
        assert get_hits(obj, first_day=today, last_day=today) == len(self.left[obj])
        assert hits_by_day(Article, first_day=today, last_day=today) == {
            today: sum(len(hits) for hits in self.left.values())
        }

    def teardown(self) -> None:
        flushing.flush_hits()
        expected = {obj: len(hits) for obj, hits in self.left.items()}
        found = slot_sums(self.objs), daily_sums(self.objs)
        super().teardown()
        assert found == (expected, expected)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_what_is_left_counts_once(tmp_path):
    GoingBack.server = Valkey(tmp_path)
    GoingBack.server.start()
    GoingBack.proxy = KeepingProxy(GoingBack.server.port)
    try:
        run(GoingBack, max_examples=20)
    finally:
        GoingBack.proxy.close()
        GoingBack.server.stop(signal.SIGKILL)
