"""A server in front of the example site: it knows what pages send, and may lose an answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HANGS_SECONDS = 180
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "server", "date"}


def ask(
    site: str, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the status, the headers and the content of an answer."""
    with closing(HTTPConnection(site, timeout=HANGS_SECONDS)) as connection:
        connection.request(method, path, body, headers)
        with connection.getresponse() as answer:
            return answer.status, answer.getheaders(), answer.read()


class Front(ThreadingHTTPServer):
    """Passes requests on to ``site``. Each ``visitor`` has a User-Agent of its own."""

    daemon_threads = True

    def __init__(self, site: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = urlsplit(site).netloc
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.visitor = 1
        self.answers_to_lose = 0
        self.bodies: list[dict[str, Any]] = []
        """What pages have sent to be counted, or to get numbers."""

        self.paths: list[str] = []
        """The paths of all requests that have been answered, or whose answer was lost."""

        self._changed = threading.Condition()

    @property
    def hits(self) -> int:
        """How many tokens were sent to be counted, in requests with an id of their own."""
        return sum(len(hit) for hit in {body["id"]: body["hit"] for body in self.bodies}.values())

    def note(self, path: str, body: bytes) -> None:
        with self._changed:
            self.paths.append(path)
            if path == "/seen/":
                self.bodies.append(json.loads(body))
            self._changed.notify_all()

    def wait_for(self, path: str, times: int = 1) -> None:
        """Wait until so many requests for a path are answered."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: sum(path in known for known in self.paths) >= times, HANGS_SECONDS
            )
        assert found, (path, times, self.paths)

    def loses_this_answer(self) -> bool:
        with self._changed:
            self.answers_to_lose -= 1
            return self.answers_to_lose >= 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Front

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = dict(self.headers.items())
        headers["User-Agent"] += f" Visitor/{self.server.visitor}"
        status, answered, content = ask(
            self.server.site, self.command, self.path, body, {**headers, "Connection": "close"}
        )
        self.server.note(self.path, body)
        if self.path == "/seen/" and self.server.loses_this_answer():
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in answered:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Nothing: the test says what went wrong."""


@contextmanager
def run_front(site: str) -> Iterator[Front]:
    front = Front(site)
    threading.Thread(target=front.serve_forever, daemon=True).start()
    try:
        yield front
    finally:
        front.shutdown()
        front.server_close()
