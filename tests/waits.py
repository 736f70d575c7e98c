"""How long code waits, without the time that a busy machine takes away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STEP_SECONDS = 0.01


class _LostTime:
    """Adds up how much longer a thread sleeps than it wants to."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._is_over.is_set():
            began_at = time.monotonic()
            time.sleep(STEP_SECONDS)
            self.seconds += time.monotonic() - began_at - STEP_SECONDS


@contextmanager
def waits_for(least: float, most: float) -> Iterator[None]:
    """
    Fail if the block takes less than ``least`` seconds, or more than ``most``.

    If the machine is busy, the block may take longer, by as much as another thread of this process
    had to wait for the processor, or for Python's lock. So this measures waits: what the block
    itself computes counts in part.
    """
    lost = _LostTime()
    began_at = time.monotonic()
    lost.start()
    try:
        yield
    finally:
        seconds = time.monotonic() - began_at
        lost.stop()
    assert least <= seconds, f"{seconds:.2f} s"
    assert seconds - lost.seconds <= most, f"{seconds:.2f} s, of which {lost.seconds:.2f} s lost"
