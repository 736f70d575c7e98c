from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from django_redis.pool import ConnectionFactory

from django_hitcount import outages
from django_hitcount.buffers import get_buffer
from django_hitcount.outages import waits
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.servers import HOST, Valkey

TIMEOUT_SECONDS = 1.0
"""How long pages wait for a Redis that hangs."""


@pytest.fixture
def own_valkey(tmp_path: Path, settings) -> Iterator[Valkey]:
    """A server that keeps all when stopped, and all that it has answered when killed."""
    # With "everysec", Redis answers before it has written while the disk is busy.
    server = Valkey(tmp_path, options=["--appendonly", "yes", "--appendfsync", "no"])
    server.start()
    location = f"redis://{HOST}:{server.port}/0"
    change_alias(settings, LOCATION=location)
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": "hitcount"}
    yield server
    server.stop(signal.SIGKILL)
    # Nobody needs its connections any more.
    ConnectionFactory._pools.pop(location, None)


@pytest.fixture(autouse=True)
def reads_are_patient() -> None:
    """They are not: the tests here are of how long pages wait."""


@pytest.fixture
def endless_pauses(monkeypatch) -> None:
    """A breaker that opens stays open until the test says ``try_now()``."""
    for name in (
        "FIRST_PAUSE_SECONDS",
        "LONGEST_PAUSE_SECONDS",
        "LONGEST_PAUSE_IF_SLOW_SECONDS",
    ):
        monkeypatch.setattr(outages, name, math.inf)


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The clock for waits, in place of the real one. The test sets ``now``, in seconds."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    for module in (outages, waits):
        monkeypatch.setattr(module, "time", clock)
    return clock


@contextmanager
def hanging(server: Valkey) -> Iterator[None]:
    """
    Let Redis hang. In the block, pages do not wait long for it.

    Afterwards it still hangs, but work that needs it waits for it, as it does in all tests.
    """
    server.pause()
    guard = get_buffer()._breaker
    usual, guard.timeout_seconds = guard.timeout_seconds, TIMEOUT_SECONDS
    yield
    guard.timeout_seconds = usual


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")
