"""Writers, and others who are killed, around a Redis that is killed, too."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django_hitcount.buffers import get_buffer
from django_hitcount.db.tables import MissedRecord
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import Flush, flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests import children
from tests.app.models import Article
from tests.concurrency.board import Board
from tests.concurrency.victims import Victims
from tests.servers import Valkey, wait_until

SECONDS = float(os.environ.get("HITCOUNT_TEST_STORM_SECONDS", "60"))
SECONDS_BETWEEN_CRASHES = (2.0, 5.0)
LONGEST_ABSENCE_SECONDS = 0.5

WRITERS = 3
FLUSHERS = 2
COMPACTORS = 1
PAUSE_SECONDS = 0.01
"""Between two flushes of a process, so that writers get their share of the machine."""


def flush_if_possible() -> Flush | None:
    """Flush; returns None if Redis is away, or if something is left to the next flush."""
    with suppress(BufferUnavailable, ExceptionGroup):
        return flush_hits()
    return None


def flush_all() -> None:
    """Flush until nothing is left, neither in Redis nor of what it missed."""

    def is_done() -> bool:
        get_buffer.cache_clear()  # A breaker of this process may have seen Redis go.
        return flush_if_possible() == Flush() and not MissedRecord.objects.exists()

    wait_until(is_done, "a flush of everything")


def flush_now_and_then() -> None:
    flush_if_possible()
    time.sleep(random.uniform(0, 2 * PAUSE_SECONDS))


def compact_now_and_then() -> None:
    compact_hits()
    time.sleep(random.uniform(0, 2 * PAUSE_SECONDS))


@dataclass
class Storm:
    """
    Three processes that record hits, and others that flush, compact and read, which are killed.

    Nobody kills the writers. So each hit that was begun was told to be counted, or was told not to
    be: then it may be counted all the same, as Redis may have run a command without an answer.
    """

    server: Valkey
    articles: Sequence[Article]
    crashes: int = 0
    begun: Board = field(init=False)
    told: Board = field(init=False)

    def __post_init__(self) -> None:
        self.begun = Board(WRITERS, len(self.articles))
        self.told = Board(WRITERS, len(self.articles))
        self._done = Board(1, 1)

    def rage(self, meanwhile: Callable[[], object]) -> None:
        """Let hits rain in for SECONDS, and call ``meanwhile`` again and again."""
        writers = [children.fork(lambda row=row: self._write(row)) for row in range(WRITERS)]
        works = [flush_now_and_then] * FLUSHERS + [compact_now_and_then] * COMPACTORS
        victims = Victims([*works, self._read])
        victims.start_all()
        ends_at = time.monotonic() + SECONDS
        crash_at = self._next_crash()
        while time.monotonic() < ends_at:
            victims.kill_due()
            meanwhile()
            if time.monotonic() >= crash_at:
                self._crash()
                crash_at = self._next_crash()
            time.sleep(0.002)
        self._done.add(0, 0)
        assert [children.wait_for(pid) for pid in writers] == [0] * WRITERS
        victims.kill_all()
        flush_all()
        print(f"\n{self.told.total()} hits, {self.begun.total() - self.told.total()} not counted,")
        print(f"{self.crashes} crashes of Redis, {victims.kills} kills", end=" ")

    @property
    def counted(self) -> dict[Article, int]:
        """The hits of each article that writers were told to be counted."""
        return {article: self.told.column(at) for at, article in enumerate(self.articles)}

    @property
    def attempted(self) -> dict[Article, int]:
        """All hits of each article, also those that writers were told not to be counted."""
        return {article: self.begun.column(at) for at, article in enumerate(self.articles)}

    def _write(self, row: int) -> None:
        chance = random.Random(row)
        while not self._done.total():
            chosen = chance.sample(range(len(self.articles)), chance.choice([1, 1, 1, 5]))
            for at in chosen:
                self.begun.add(row, at)
            hits = record_hits([self.articles[at] for at in chosen])
            for at, hit in zip(chosen, hits, strict=True):
                self.told.add(row, at, int(hit.counted))
                assert hit.total is None or hit.total <= self.begun.column(at)

    def _read(self) -> None:
        totals = get_hits(self.articles)
        for article, attempted in self.attempted.items():
            assert totals[article] <= attempted

    def _crash(self) -> None:
        self.server.stop(signal.SIGKILL)
        time.sleep(random.uniform(0, LONGEST_ABSENCE_SECONDS))
        self.server.start()
        self.crashes += 1

    @staticmethod
    def _next_crash() -> float:
        return time.monotonic() + random.uniform(*SECONDS_BETWEEN_CRASHES)
