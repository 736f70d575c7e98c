"""Many requests at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from tests import children
from tests.concurrency.board import Board
from tests.servers import wait_until


def ask_at_once(ask: Callable[[int], object], *, requests: int, processes: int) -> None:
    """
    Call ``ask`` with the number of each request, in a thread each, when all processes run.

    Fails if one of the calls raises.
    """
    ready = Board(processes, 1)

    def ask_when_ready(number: int) -> None:
        wait_until(lambda: ready.total() == processes, "all processes")
        try:
            ask(number)
        finally:
            connections.close_all()

    def serve(process: int) -> None:
        numbers = range(process, requests, processes)
        with ThreadPoolExecutor(len(numbers)) as threads:
            answers = [threads.submit(ask_when_ready, number) for number in numbers]
            ready.add(process, 0)
        for answer in answers:
            answer.result()

    pids = [children.fork(lambda process=process: serve(process)) for process in range(processes)]
    assert [children.wait_for(pid) for pid in pids] == [0] * processes
