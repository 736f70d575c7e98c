"""Many requests at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

from tests import children
from tests.concurrency.board import Board
from tests.servers import wait_until


def ask_at_once(ask: Callable[[int], object], *, requests: int, processes: int) -> None:
    """Call ``ask`` with the number of each request, in a thread each, when all processes run."""
    ready = Board(processes, 1)

    def ask_when_ready(number: int) -> None:
        wait_until(lambda: ready.total() == processes, "all processes")
        ask(number)
        connections.close_all()

    def serve(process: int) -> None:
        threads = [
            threading.Thread(target=ask_when_ready, args=[number])
            for number in range(process, requests, processes)
        ]
        for thread in threads:
            thread.start()
        ready.add(process, 0)
        for thread in threads:
            thread.join()

    pids = [children.fork(lambda process=process: serve(process)) for process in range(processes)]
    assert [children.wait_for(pid) for pid in pids] == [0] * processes
