"""Sends page requests to the running site, as visitors' browsers and bots did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from queue import Empty, SimpleQueue

from blog.paths import path_to_url

from demo import replayed_days
from demo.access_log import PageRequest

CONNECTIONS = 6
ANSWER_SECONDS = 30.0
METHODS_OF_PAGES = frozenset({"GET", "HEAD"})
"""Requests with other methods get no page, but an answer such as 403 or 405."""


@dataclass(slots=True)
class Outcome:
    answered: list[PageRequest] = field(default_factory=list)
    """Page requests that the site answered as expected."""

    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.answered += other.answered
        self.failures += other.failures


def send_all(
    requests: Sequence[PageRequest], *, host: str, port: int, advance: Callable[[], None]
) -> Outcome:
    """Each free connection takes the next request, which keeps the log's order approximately."""
    queue: SimpleQueue[PageRequest] = SimpleQueue()
    for request in requests:
        queue.put(request)
    total = Outcome()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        jobs = [pool.submit(_send_from, queue, host, port, advance) for _ in range(CONNECTIONS)]
        for job in jobs:
            total.add(job.result())
    return total


def _send_from(
    queue: SimpleQueue[PageRequest], host: str, port: int, advance: Callable[[], None]
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


def _send(connection: HTTPConnection, request: PageRequest, outcome: Outcome) -> None:
    url = path_to_url(request.path)
    try:
        headers = headers_of(request) | replayed_days.headers_of(request.at)
        connection.request(request.method, url, headers=headers)
        response = connection.getresponse()
        response.read()
    except (OSError, HTTPException) as error:
        # Not sent again: the site may have counted it before the answer was lost.
        connection.close()
        outcome.failures.append(f"{request.method} {url}: {error!r}")
        return
    if is_right_answer(request.method, response.status):
        outcome.answered.append(request)
    else:
        outcome.failures.append(f"{request.method} {url}: answered {response.status}")


def is_right_answer(method: str, status: int) -> bool:
    return status == 200 if method in METHODS_OF_PAGES else status < 500


def headers_of(request: PageRequest) -> dict[str, str]:
    """The headers that a proxy in front of the site would send, with the visitor's address."""
    headers = {"X-Forwarded-For": request.address}
    if request.user_agent:
        headers["User-Agent"] = request.user_agent
    return headers
