"""Starts child processes, watches them, and stops them all when the demo ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from django.core.management.base import CommandError

POLL_SECONDS = 0.05
STOP_SECONDS = 10.0
LOG_LINES_SHOWN = 20
PR_SET_PDEATHSIG = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: stop everything."""


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def ending(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:]) or "It wrote nothing."


class Processes:
    """
    A context in which children run. SIGINT and SIGTERM only set a flag, which every wait looks at,
    so that no signal can arrive between the start of a child and the note that it is there.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        self._children: list[Child] = []
        self._jobs: list[Child] = []
        self._interrupted = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, self._interrupt) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        while self._jobs:
            _stop(self._jobs.pop())
        # In reverse order: the site first, what it talks to last.
        while self._children:
            _stop(self._children.pop())
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def start(self, name: str, command: Sequence[str], *, pass_fds: Sequence[int] = ()) -> Child:
        """
        A service: its output goes to a log file, and its end is the demo's end.

        It inherits the open files in ``pass_fds``, under the same numbers.
        """
        log = self.directory / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output:
            child = Child(name, self._spawn(command, output.fileno(), pass_fds), log)
        self._children.append(child)
        return child

    def run(self, command: Sequence[str]) -> int:
        """A job: it writes to the terminal, and its exit code is returned."""
        return self.finish(self.begin(command))

    def begin(self, command: Sequence[str]) -> Child:
        """A job that goes on beside the start of the services; finish() waits for it."""
        job = Child("job", self._spawn(command, None), Path(os.devnull))
        self._jobs.append(job)
        return job

    def finish(self, job: Child) -> int:
        """The exit code of a job."""
        self.wait_until(lambda: job.process.poll() is not None)
        self._jobs.remove(job)
        _stop(job)
        return job.process.returncode

    def wait_until(
        self, ready: Callable[[], bool], *, what: str = "", seconds: float = float("inf")
    ) -> None:
        """Raises CommandError at the deadline or when a service has ended."""
        deadline = time.monotonic() + seconds
        while True:
            self._check()
            if ready():
                return
            if time.monotonic() > deadline:
                raise CommandError(f"{what} was not ready after {seconds:.0f} seconds.")
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        if self._interrupted:
            raise Interrupted
        for child in self._children:
            code = child.process.poll()
            if code is not None:
                raise CommandError(
                    f"The {child.name} ended with exit code {code}. Its last words:\n\n"
                    f"{child.ending()}"
                )

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = True

    def _spawn(
        self, command: Sequence[str], output: int | None, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        sys.stdout.flush()
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            env=self.environment,
            cwd=Path(__file__).parent.parent,
            pass_fds=pass_fds,
            # Away from the terminal's Ctrl-C: the demo stops its children one after the other.
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one thread only
        )


def _die_with_parent() -> None:
    """Linux only, in case the demo itself is killed with SIGKILL."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(child: Child) -> None:
    child.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.process.wait(STOP_SECONDS)
    # The child's own children are of its group: none of them stays, whatever it did.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()
