"""The demo from start to stop."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from django.core.management.base import CommandError

from demo import stack
from demo.processes import Interrupted, Processes

EXIT_INTERRUPTED = 130

Say = Callable[[str], None]


def run(asked_port: int | None, replay: Path | None, *, say: Say) -> None:
    log = replay.resolve() if replay else None
    if log and not log.is_file():
        raise CommandError(f"File not found: {replay}.")
    port = stack.choose_port(asked_port)
    if port not in (asked_port, stack.USUAL_PORT):
        say(f"Port {stack.USUAL_PORT} is taken. The site uses port {port}.")
    with tempfile.TemporaryDirectory(prefix="hitcount-demo-") as directory:
        try:
            _start_and_serve(Path(directory), port, log, say)
        except Interrupted:
            say("Stopped.")
            if log:
                raise SystemExit(EXIT_INTERRUPTED) from None


def _start_and_serve(directory: Path, port: int, log: Path | None, say: Say) -> None:
    password = secrets.token_urlsafe(9)
    redis_port = stack.free_port()
    # The replay acts as a proxy in front of the site, and reports the client's address.
    variables = stack.environment(directory, redis_port, password, proxies=1 if log else 0)
    with Processes(directory, variables) as processes:
        say("Starting Valkey, the database, a Celery worker and the web server ...")
        stack.start_valkey(processes, redis_port)
        stack.prepare(processes, log)
        stack.start_worker(processes, variables)
        stack.start_web(processes, port)
        address = f"http://{stack.HOST}:{port}/"
        say(f"The site:   {address}")
        say(f"The admin:  {address}admin/  user {stack.ADMIN}, password {password}")
        say("Hits reach the database every 10 seconds. Ctrl-C stops everything.")
        _serve(processes, port, log)


def _serve(processes: Processes, port: int, log: Path | None) -> None:
    """Until the replay is done or somebody stops the demo."""
    if log is None:
        processes.wait_until(lambda: False)
    elif processes.run(stack.manage("demo_replay", str(log), f"--port={port}")):
        raise SystemExit(1)
