"""Child processes, which may be killed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

from django.db import connections

from tests.servers import die_with_parent, wait_until

_kept: list[object] = []
_running: set[int] = set()
_exit_codes: dict[int, int] = {}


def fork(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child with new connections; returns its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        _running.add(pid)
        return pid
    try:
        die_with_parent()
        for alias in connections:
            # Closing it would close the parent's connection, too: keep it, and open another.
            _kept.append(connections[alias])
            del connections[alias]
        work()
    except BaseException:  # noqa: BLE001 - the parent sees the exit code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def wait_for(pid: int) -> int:
    """Wait for a child; returns its exit code, negative if a signal killed it."""
    wait_until(lambda: _has_exited(pid), f"the end of child {pid}")
    return _exit_codes.pop(pid)


def has_ended(pid: int) -> bool:
    """Whether a child has ended; raises AssertionError if its exit code is not 0."""
    if not _has_exited(pid):
        return False
    code = _exit_codes.pop(pid)
    assert code == 0, f"child {pid} ended with exit code {code}"
    return True


def _has_exited(pid: int) -> bool:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        _running.discard(pid)
        _exit_codes[pid] = os.waitstatus_to_exitcode(status)
    return bool(done)


def kill(pid: int) -> None:
    """Kill a child that has not ended."""
    if not _has_exited(pid):
        _running.remove(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def kill_all() -> None:
    """Kill the children that a failed test has left running."""
    for pid in [*_running]:
        kill(pid)


def run(work: Callable[[], object]) -> int:
    """Run ``work`` in a child and wait for it; returns its exit code."""
    return wait_for(fork(work))


def die(*args: object, **kwargs: object) -> None:
    """Kill the current process, without a chance to clean up."""
    os.kill(os.getpid(), signal.SIGKILL)
