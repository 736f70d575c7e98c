from __future__ import annotations

import threading
import time
from typing import TextIO

WIDTH = 30
REDRAW_SECONDS = 0.1


class Progress:
    """A bar on a terminal, a line for each tenth elsewhere. Threads may share it."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total = total
        self.stream = stream
        self.done = 0
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._drawn_at = 0.0

    def advance(self) -> None:
        with self._lock:
            self.done += 1
            if self.stream.isatty():
                self._draw_bar()
            elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
                self._write(f"{self._status()}\n")

    def _draw_bar(self) -> None:
        now = time.monotonic()
        if self.done < self.total and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at = now
        bar = "#" * (WIDTH * self.done // self.total)
        end = "\n" if self.done == self.total else ""
        self._write(f"\r[{bar:.<{WIDTH}}] {self._status()} {end}")

    def _status(self) -> str:
        seconds = max(time.monotonic() - self._started, 0.001)
        return f"{self.done:,} of {self.total:,} sent, {self.done / seconds:,.0f} a second"

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
