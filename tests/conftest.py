from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from django_hitcount.buffers import get_buffer
from tests import children
from tests import settings as test_settings
from tests.servers import SERVERS, ServerMissing, Valkey

REDIS_BUFFER = "django_hitcount.buffers.redis.RedisBuffer"
DATABASE_BUFFER = "django_hitcount.buffers.database.DatabaseBuffer"


def pytest_report_header() -> str:
    left_out = sorted({"sqlite", *SERVERS} - {test_settings.DATABASE})
    return (
        f"database: {test_settings.DATABASE} (left out: {', '.join(left_out)}; "
        "run their tox environments to include them), buffer: Valkey"
    )


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    directory = Path(test_settings.DIRECTORY, "valkey")
    directory.mkdir()
    server = Valkey(directory, int(test_settings.REDIS_PORT))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def database_server() -> Iterator[None]:
    if test_settings.DATABASE == "sqlite":
        yield
        return
    directory = Path(test_settings.DIRECTORY, test_settings.DATABASE)
    directory.mkdir()
    directory.parent.chmod(0o755)
    server = SERVERS[test_settings.DATABASE](directory, int(test_settings.DATABASE_PORT))
    try:
        server.start()
    except ServerMissing as exc:
        pytest.exit(f"{test_settings.DATABASE} is to be tested, but {exc} is not installed", 1)
    yield
    server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: None) -> Iterator[None]:
    yield
    shutil.rmtree(test_settings.DIRECTORY, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def worker_environment(valkey: Valkey, django_db_setup: None) -> None:
    """Tell worker processes which database to use."""
    os.environ["HITCOUNT_TEST_DATABASE_NAME"] = str(connection.settings_dict["NAME"])


@pytest.fixture
def redis(valkey: Valkey):
    """The client of an empty Redis."""
    from django_redis import get_redis_connection

    client = get_redis_connection("hitcount")
    client.flushall()
    return client


@pytest.fixture
def redis_buffer(redis):
    """Hits go into Redis."""
    with override_settings(HITCOUNT={**settings.HITCOUNT, "BUFFER": REDIS_BUFFER}):
        yield get_buffer()


@pytest.fixture(params=["database", "redis"])
def buffer(request: pytest.FixtureRequest):
    """Hits go into each of the buffers in turn."""
    if request.param == "redis":
        request.getfixturevalue("redis_buffer")
        yield get_buffer()
        return
    with override_settings(HITCOUNT={**settings.HITCOUNT, "BUFFER": DATABASE_BUFFER}):
        yield get_buffer()


@pytest.fixture(autouse=True)
def no_child_outlives_its_test() -> Iterator[None]:
    yield
    children.kill_all()
