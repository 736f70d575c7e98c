"""Processes that are killed at random moments and replaced."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from tests import children
from tests.sessions import wait_for_transactions_of_the_dead


def forever(work: Callable[[], object]) -> Callable[[], None]:
    def loop() -> None:
        for _ in count():
            work()

    return loop


@dataclass
class Victims:
    """One process for each of ``works``, which it does again and again until it is killed."""

    works: list[Callable[[], object]]
    kills: int = 0
    running: dict[int, tuple[float, Callable[[], object]]] = field(default_factory=dict)

    def start(self, work: Callable[[], object]) -> None:
        lifetime = random.uniform(0.02, 0.4)
        self.running[children.fork(forever(work))] = (time.monotonic() + lifetime, work)

    def start_all(self) -> None:
        for work in self.works:
            self.start(work)

    def kill_due(self) -> None:
        for pid, (due, work) in [*self.running.items()]:
            if time.monotonic() >= due:
                self.kill(pid)
                self.start(work)

    def kill(self, pid: int) -> None:
        del self.running[pid]
        os.kill(pid, signal.SIGKILL)
        # A process that ended with an error before has another exit code.
        assert children.wait_for(pid) == -signal.SIGKILL
        self.kills += 1

    def kill_all(self) -> None:
        for pid in [*self.running]:
            self.kill(pid)
        wait_for_transactions_of_the_dead()
