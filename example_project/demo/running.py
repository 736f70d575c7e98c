"""The demo from start to stop."""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.core.management.base import CommandError

from demo import stack
from demo.processes import Interrupted, Processes

EXIT_INTERRUPTED = 130

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the command was asked for."""

    port: int | None
    replay: Path | None
    """An access log to replay. The demo ends with it, unless ``stay``."""

    empty: bool
    stay: bool

    @property
    def is_made_up(self) -> bool:
        return not self.empty and self.replay is None


def run(options: Options, *, say: Say) -> None:
    if options.replay and not options.replay.is_file():
        raise CommandError(f"File not found: {options.replay}.")
    with (
        stack.listen(options.port) as listener,
        tempfile.TemporaryDirectory(prefix="hitcount-demo-") as directory,
    ):
        try:
            _start_and_serve(Path(directory), listener, options, say)
        except Interrupted:
            say("Stopped.")
            if options.replay and not options.stay:
                raise SystemExit(EXIT_INTERRUPTED) from None


def _start_and_serve(directory: Path, listener: socket.socket, options: Options, say: Say) -> None:
    port = listener.getsockname()[1]
    if port not in (options.port, stack.USUAL_PORT):
        say(f"Port {stack.USUAL_PORT} is taken. The site uses port {port}.")
    password = secrets.token_urlsafe(9)
    variables = stack.environment(
        directory,
        password,
        is_replay=options.replay is not None,
        is_made_up=options.is_made_up,
    )
    with Processes(directory, variables) as processes:
        say("Starting Valkey, the database, a Celery worker and the web server ...")
        stack.start_valkey(processes)
        stack.prepare(processes, options.replay)
        traffic = stack.begin_traffic(processes) if options.is_made_up else None
        stack.start_worker(processes)
        stack.start_web(processes, listener)
        if traffic:
            stack.wait_for_traffic(processes, traffic)
        address = f"http://{stack.HOST}:{port}/"
        say(f"The site:   {address}")
        say(f"The admin:  {address}admin/  user {stack.ADMIN}, password {password}")
        say("Hits reach the database every 10 seconds. Ctrl-C stops everything.")
        serve(processes, port, options)


def serve(processes: Processes, port: int, options: Options) -> None:
    """
    Until the replay is done or somebody stops the demo.

    Raises SystemExit if the replay ends with a difference: after the stay, if there is one.
    """
    log = options.replay
    exit_code = 0
    if log:
        exit_code = processes.run(stack.manage("demo_replay", str(log.resolve()), f"--port={port}"))
    if log is None or options.stay:
        processes.wait_until(lambda: False)
    if exit_code:
        raise SystemExit(1)
