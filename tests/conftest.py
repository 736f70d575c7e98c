from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import time_machine
from _pytest.unittest import TestCaseFunction
from asgiref.sync import sync_to_async
from celery import current_app
from django.contrib.auth.models import User
from django.db import connection, connections
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from django_hitcount import deletion, known_rows, outages, page_numbers, tasks
from django_hitcount.buffers import database, get_buffer
from django_hitcount.conf import get_config
from django_hitcount.db import admissions
from django_hitcount.visitors import hashing
from tests import children
from tests import settings as test_settings
from tests.registers import ApartHashes
from tests.servers import SERVERS, Server, ServerMissing, Valkey
from tests.visiting import forget_keys, set_rule

pytest_plugins = ["django_hitcount.pytest_plugin", "pytester"]

# A busy machine may stop a test at any time, for longer than Hypothesis allows by default.
hypothesis_settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("busy")


def pytest_report_header() -> str:
    left_out = sorted({"sqlite", *SERVERS} - {test_settings.DATABASE})
    return (
        f"database: {test_settings.DATABASE} (left out: {', '.join(left_out)}; "
        "run their tox environments to include them), buffer: Valkey"
    )


ABOUT_REQUESTS = (
    *("compat/", "recipes/", "refusals/", "test_badges.py", "test_downloads.py"),
    *("rest_framework/test_fields.py", "rest_framework/test_mixins.py"),
)
"""Tests that ask what a request counts or shows. What they write and read, others test, too."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests for which it does not matter which database they use to the runs with SQLite."""
    if test_settings.DATABASE != "sqlite":
        others = [item for item in items if not _needs_each_database(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _needs_each_database(item)]


def _needs_each_database(item: pytest.Item) -> bool:
    path = item.path.as_posix().partition("/tests/")[2]
    return _uses_database(item) and not path.startswith(ABOUT_REQUESTS)


def _uses_database(item: pytest.Item) -> bool:
    if isinstance(item, TestCaseFunction):
        return True
    fixtures = {*getattr(item, "fixturenames", ())}
    return bool(item.get_closest_marker("django_db") or fixtures & {"db", "transactional_db"})


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    directory = Path(test_settings.DIRECTORY, "valkey")
    directory.mkdir()
    server = Valkey(directory, int(test_settings.REDIS_PORT))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def database_server() -> Iterator[Server | None]:
    if test_settings.DATABASE == "sqlite":
        yield None
        return
    directory = Path(test_settings.DIRECTORY, test_settings.DATABASE)
    directory.mkdir()
    directory.parent.chmod(0o755)
    server = SERVERS[test_settings.DATABASE](directory, int(test_settings.DATABASE_PORT))
    try:
        server.start()
    except ServerMissing as exc:
        pytest.exit(f"{test_settings.DATABASE} is to be tested, but {exc} is not installed", 1)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: Server | None) -> None:
    """Start the server before the test database is created; stop it after that is dropped."""


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
def redis_buffer(redis, settings):
    """The buffer in Redis."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": "hitcount"}
    return get_buffer()


@pytest.fixture(params=[None, "hitcount"], ids=["database", "redis"])
def buffer(request: pytest.FixtureRequest, redis, settings):
    """Each of the buffers in turn."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": request.param}
    return get_buffer()


@pytest.fixture
def rule(buffer, settings):
    """Set the options of the counter "views"; the test runs with each of the buffers."""
    return partial(set_rule, settings)


@pytest.fixture
def redis_rule(redis_buffer, settings):
    """Set the options of the counter "views"; the test runs with Redis."""
    return partial(set_rule, settings)


@pytest.fixture
def hitcount(settings, redis) -> Iterator[dict[str, object]]:
    """A valid configuration with Redis and Celery beat; returns the dict ``HITCOUNT``."""
    settings.HITCOUNT = {"REDIS": "hitcount"}
    current_app.conf.beat_schedule = tasks.beat_schedule()
    yield settings.HITCOUNT
    current_app.conf.beat_schedule = {}


@pytest.fixture
def user(db) -> User:
    return User.objects.create(username="ann", pk=5)


@pytest.fixture
async def no_connection_of_the_thread_is_left() -> AsyncIterator[None]:
    """Close what async code has opened in its thread, or the test database cannot be dropped."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def nothing_fails(request: pytest.FixtureRequest, caplog) -> Iterator[None]:
    """Fail if a log shows that a refusal or an identity raised, except in tests of errors."""
    yield
    assert "error" in request.node.name or not caplog.get_records("call")


@pytest.fixture(autouse=True)
def no_test_meets_the_buffer_of_another() -> None:
    """Clear what a process remembers: settings, buffer, breakers, visitor keys, pages, rows."""
    get_config.cache_clear()
    get_buffer.cache_clear()
    outages.page_read_breaker.cache_clear()
    outages.ranking_breaker.cache_clear()
    forget_keys()
    known_rows.clear_known_rows()
    page_numbers._wishes_of.cache_clear()


@pytest.fixture
def late_on_a_sunday() -> Iterator[None]:
    """In Berlin, it is Monday already."""
    with time_machine.travel("2026-11-22T23:30:00+00:00", tick=False):
        yield


@pytest.fixture(autouse=True)
def reads_are_patient(monkeypatch) -> None:
    """Let pages wait for the tables, so that they show all numbers on a busy machine."""
    monkeypatch.setattr(outages, "PAGE_READ_SECONDS", 20.0)


@pytest.fixture(autouse=True)
def deletions_are_patient(monkeypatch) -> None:
    """Let pages wait for locks, so that they leave nothing to the next compaction."""
    monkeypatch.setattr(deletion, "PAGE_PATIENCE_SECONDS", 20.0)


@pytest.fixture(autouse=True)
def throttles_are_patient(monkeypatch) -> None:
    """Let throttles try again for longer, on a busy machine."""
    monkeypatch.setattr(admissions, "PATIENCE_SECONDS", 20.0)


@pytest.fixture
def hits_are_patient(monkeypatch) -> None:
    """Let hits of one counter try again for longer."""
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 20.0)


@pytest.fixture
def hits_wait_for_all_locks(hits_are_patient, monkeypatch) -> None:
    """Let hits wait until they have the locks, however many others want them, too."""
    monkeypatch.setattr(database, "TRIES_AT_LOCKS", 1000)
    monkeypatch.setattr(database, "VISITOR_LOCK_WAIT_SECONDS", 60.0)


@pytest.fixture(autouse=True)
def no_two_visitors_share_a_register(monkeypatch) -> None:
    """Few visitors are counted exactly."""
    monkeypatch.setattr(hashing, "_hash", ApartHashes(hashing._hash))


@pytest.fixture(autouse=True)
def no_child_outlives_its_test() -> Iterator[None]:
    yield
    children.kill_all()
