"""Two projects, or a site and its tests, have the same settings and Redis, and two databases."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from django_hitcount.throttle import Throttle
from tests import settings as test_settings
from tests.app.models import Article
from tests.proxies import Proxy
from tests.tables import daily_sums, slot_sums

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"]),
    pytest.mark.usefixtures("redis_buffer"),
]


ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def article() -> Article:
    """The article with the key that another project also has."""
    return Article.objects.create(pk=1)


def run_another_project(what: str, *, database: object, **more: str) -> int:
    """Do something in a process whose database has this name; returns its exit code."""
    own = {"HITCOUNT_TEST_DATABASE_NAME": str(database), "HITCOUNT_TEST_REDIS": "hitcount"}
    python = {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(ROOT)}
    content_type_id = ContentType.objects.get_for_model(Article).pk
    words = [sys.executable, "-m", "tests.faults.another_project", what, str(content_type_id)]
    return subprocess.call(words, cwd=ROOT, env={**os.environ, **python, **own, **more})


@pytest.mark.parametrize("what", ["create", "delete"])
def test_another_project_with_the_same_object(article, what):
    """What it records, flushes and deletes touches none of our hits."""
    record_hit(article, amount=5)
    flush_hits()
    assert record_hit(article, amount=5).total == 10
    assert Throttle("mail", seconds=60).admit()

    exit_code = run_another_project(what, database=connections["elsewhere"].settings_dict["NAME"])

    assert get_hits(article) == 10
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 10}
    assert get_hits(article) == 10
    assert exit_code == 0  # It has seen its own hits only.


def test_another_project_touches_no_key(redis, article):
    record_hit(article, amount=5)
    before = {name: redis.dump(name) for name in redis.scan_iter()}

    run_another_project("delete", database=connections["elsewhere"].settings_dict["NAME"])

    assert {name: redis.dump(name) for name in before} == before


@pytest.mark.skipif(test_settings.DATABASE == "sqlite", reason="a file of SQLite is on no host")
def test_database_that_moves_to_another_host(article):
    """Its waiting hits go with it."""
    record_hit(article, amount=5)
    proxy = Proxy(int(test_settings.DATABASE_PORT))
    proxy.start()

    exit_code = run_another_project(
        "flush",
        database=connection.settings_dict["NAME"],
        HITCOUNT_TEST_DATABASE_PORT=str(proxy.port),
    )

    assert exit_code == 0
    assert proxy.questions
    proxy.stop()
    assert slot_sums([article]) == daily_sums([article]) == {article: 5}
