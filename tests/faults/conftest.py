from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django_redis.pool import ConnectionFactory

from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.conftest import REDIS_BUFFER
from tests.servers import HOST, Valkey

TIMEOUT_SECONDS = 1.0
"""Short for a test, and long enough for an answer on a busy machine."""


@pytest.fixture
def own_valkey(tmp_path: Path, settings) -> Iterator[Valkey]:
    """A server that keeps all when stopped, and all that it has answered when killed."""
    # With "everysec", Redis answers before it has written while the disk is busy.
    server = Valkey(tmp_path, options=["--appendonly", "yes", "--appendfsync", "no"])
    server.start()
    location = f"redis://{HOST}:{server.port}/0"
    change_alias(settings, LOCATION=location)
    settings.HITCOUNT = {**settings.HITCOUNT, "BUFFER": REDIS_BUFFER}
    yield server
    server.stop(signal.SIGKILL)
    # Another server may get its port; the pool would keep the timeouts of this test.
    ConnectionFactory._pools.pop(location, None)


@pytest.fixture(autouse=True)
def pages_are_patient() -> None:
    """Pages are not: the tests here are of how long they wait."""


@pytest.fixture
def short_timeout(settings) -> None:
    """So that a page does not wait long for a server that hangs."""
    names = ("SOCKET_CONNECT_TIMEOUT", "SOCKET_TIMEOUT")
    change_alias(settings, OPTIONS=dict.fromkeys(names, TIMEOUT_SECONDS))


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")
