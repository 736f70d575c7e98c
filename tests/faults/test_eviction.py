"""Redis evicts keys, any of them, while a flush is halfway: no hit counts twice."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from django.db import connections

from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.proxies import Proxy
from tests.servers import HOST, Valkey
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

BEFORE, AFTER = 10, 3
"""Hits before a flusher dies, and after the eviction."""

MOST_AT_ONCE = 3
"""Keys that are evicted."""


@pytest.fixture(autouse=True)
def one_partition(redis_buffer, settings) -> None:
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1}


class Death(BaseException):
    """A flusher dies."""


@contextmanager
def dies_at_commit(*, after: bool) -> Iterator[None]:
    """The flusher dies at the COMMIT of the hits: before it, or as soon as it has happened."""
    wrapper: Any = type(connections["default"])
    commit = wrapper._commit

    def die(self: Any) -> None:
        has_hits = HitSlot.objects.exists()
        if after or not has_hits:
            commit(self)
        if has_hits:
            self.close()
            raise Death

    with mock.patch.object(wrapper, "_commit", die), suppress(Death):
        yield


@contextmanager
def dies_never() -> Iterator[None]:
    yield


STEPS = {
    "before the claim": None,
    "before the COMMIT": lambda: dies_at_commit(after=False),
    "after the COMMIT": lambda: dies_at_commit(after=True),
    "never": dies_never,
}


@dataclass
class Eviction:
    names: list[bytes]
    shown: list[int | None]
    """The total, before and after the last flush."""

    in_tables: list[int]


def evict(redis, step: str, places: Iterable[int], *, of: Callable[[], list[bytes]]) -> Eviction:
    """Let a flusher die at a step, evict the keys at some places of a list, and go on."""
    redis.flushall()
    article = Article.objects.create()
    record_hit(article, amount=BEFORE)
    if flushing := STEPS[step]:
        with flushing():
            flush_hits()
    names = of()
    evicted = [names[place] for place in places]
    if evicted:
        redis.delete(*evicted)
    record_hit(article, amount=AFTER)
    shown = [get_hits(article)]
    flush_hits()
    shown.append(get_hits(article))
    tables = [*slot_sums([article]).values(), *daily_sums([article]).values()]
    return Eviction(evicted, shown, tables)


@pytest.mark.parametrize("step", STEPS)
def test_any_keys_that_hold_no_hits(redis, step):
    """Hits are in hashes. That other keys are gone, in whatever company, changes nothing."""

    def without_hits() -> list[bytes]:
        names = [name for name in sorted(redis.scan_iter()) if redis.type(name) != b"hash"]
        places.update(range(len(names)))
        return names

    places: set[int] = set()
    evict(redis, step, [], of=without_hits)
    ends = [
        evict(redis, step, chosen, of=without_hits)
        for size in range(1, MOST_AT_ONCE + 1)
        for chosen in itertools.combinations(sorted(places), size)
    ]
    assert [end for end in ends if {*end.shown, *end.in_tables} != {BEFORE + AFTER}] == []


@pytest.mark.parametrize("step", STEPS)
def test_any_key(redis, step):
    """Its hits may be lost, and never count twice."""

    def all_names() -> list[bytes]:
        names = sorted(redis.scan_iter())
        places.update(range(len(names)))
        return names

    places: set[int] = set()
    evict(redis, step, [], of=all_names)
    ends = [evict(redis, step, [place], of=all_names) for place in sorted(places)]
    assert [end for end in ends if max(end.in_tables) > BEFORE + AFTER] == []


class TestRestart:
    """Redis has lost no hit; a key without hits is evicted, before or after a restart."""

    @staticmethod
    def restart(server: Valkey) -> None:
        server.stop(signal.SIGKILL)
        server.start()

    @staticmethod
    def evict_one(server: Valkey, place: int) -> bytes | None:
        """Evict a key that holds no hits; returns its name, or None if there are fewer keys."""
        with server.client() as redis:
            names = [name for name in sorted(redis.scan_iter()) if redis.type(name) != b"hash"]
            if place >= len(names):
                return None
            redis.delete(names[place])
            return bytes(names[place])

    def test_eviction_after_the_restart(self, own_valkey):
        wrong = []
        for place in itertools.count():
            article = Article.objects.create()
            record_hit(article, amount=BEFORE)
            self.restart(own_valkey)
            if not (evicted := self.evict_one(own_valkey, place)):
                break
            record_hit(article, amount=AFTER)
            flush_hits()
            # Without the list of runs, nobody finds the hits of the earlier run. None counts twice.
            lost = BEFORE if evicted.endswith(b":runs") else 0
            if {*slot_sums([article]).values()} != {BEFORE + AFTER - lost}:
                wrong.append((evicted, slot_sums([article])[article]))
            own_valkey.ask("FLUSHALL")
        assert wrong == []

    def test_eviction_before_a_snapshot(self, own_valkey):
        """Redis goes back to a state from after the eviction, and from before the flush."""
        own_valkey.ask("CONFIG", "SET", "appendonly", "no")
        own_valkey.options = ()
        wrong = []
        for place in itertools.count():
            article = Article.objects.create()
            record_hit(article, amount=BEFORE)
            if not (evicted := self.evict_one(own_valkey, place)):
                break
            own_valkey.ask("SAVE")
            flush_hits()
            self.restart(own_valkey)
            flush_hits()
            if {*slot_sums([article]).values()} != {BEFORE}:
                wrong.append((evicted, slot_sums([article])[article]))
            own_valkey.ask("FLUSHALL")
        assert wrong == []

    def test_eviction_of_what_knows_a_command_in_doubt(self, own_valkey, settings):
        """Redis has run the command, and its answer is lost."""
        proxy = Proxy(own_valkey.port)
        proxy.start()
        change_alias(settings, LOCATION=f"redis://{HOST}:{proxy.port}/0")
        wrong = []
        for place in itertools.count():
            article = Article.objects.create()
            record_hit(article, amount=BEFORE)
            proxy.lose()
            record_hit(article, amount=AFTER)
            if not (evicted := self.evict_one(own_valkey, place)):
                break
            flush_hits()
            if {*slot_sums([article]).values()} != {BEFORE + AFTER}:
                wrong.append((evicted, slot_sums([article])[article]))
            own_valkey.ask("FLUSHALL")
        proxy.stop()
        assert wrong == []
