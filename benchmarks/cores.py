"""Choose the cores that a server and its caller run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def apart(server: int) -> Iterator[None]:
    """
    Keep this process on one core, and ``server``, a process id, on another.

    Left alone, the kernel puts both on one core for a while, where an answer comes twice as
    fast, and then on two again. So two contenders that take turns would not have equal chances.
    A site runs them on two cores. Does nothing if there is only one core.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield
        return
    os.sched_setaffinity(0, cores[:1])
    os.sched_setaffinity(server, cores[-1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(server, cores)
