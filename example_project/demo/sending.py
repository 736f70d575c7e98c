"""Sends page views to the running site, as their visitors' browsers did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from queue import Empty, SimpleQueue

from blog.paths import path_to_url

from demo.access_log import PageView

CONNECTIONS = 6
ANSWER_SECONDS = 30.0


@dataclass(slots=True)
class Outcome:
    answered: Counter[str] = field(default_factory=Counter)
    """Page views that the site answered with 200, by path."""

    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.answered += other.answered
        self.failures += other.failures


def send_all(
    views: Sequence[PageView], *, host: str, port: int, advance: Callable[[], None]
) -> Outcome:
    """Each connection takes the next view when it is free: log order, as far as several go."""
    queue: SimpleQueue[PageView] = SimpleQueue()
    for view in views:
        queue.put(view)
    total = Outcome()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        jobs = [pool.submit(_send_from, queue, host, port, advance) for _ in range(CONNECTIONS)]
        for job in jobs:
            total.add(job.result())
    return total


def _send_from(
    queue: SimpleQueue[PageView], host: str, port: int, advance: Callable[[], None]
) -> Outcome:
    outcome = Outcome()
    connection = HTTPConnection(host, port, timeout=ANSWER_SECONDS)
    try:
        while True:
            _send(connection, queue.get_nowait(), outcome)
            advance()
    except Empty:
        return outcome
    finally:
        connection.close()


def _send(connection: HTTPConnection, view: PageView, outcome: Outcome) -> None:
    url = path_to_url(view.path)
    try:
        connection.request("GET", url, headers=_headers(view))
        response = connection.getresponse()
        response.read()
    except (OSError, HTTPException) as error:
        # Not sent again: the site may have counted it before the answer was lost.
        connection.close()
        outcome.failures.append(f"{url}: {error!r}")
        return
    if response.status == 200:
        outcome.answered[view.path] += 1
    else:
        outcome.failures.append(f"{url}: answered {response.status}")


def _headers(view: PageView) -> dict[str, str]:
    headers = {"X-Forwarded-For": view.address}
    # The log's way to say that the visitor sent none.
    if view.user_agent != "-":
        headers["User-Agent"] = view.user_agent
    return headers
