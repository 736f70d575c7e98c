from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from celery import current_app
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from django_hitcount import tasks
from django_hitcount.buffers import redis_checks
from tests.conftest import REDIS_BUFFER

pytestmark = pytest.mark.django_db  # Django's own checks of fields may ask the database.


def ids(messages) -> list[str]:
    return [m.id.removeprefix("django_hitcount.") for m in messages if "hitcount" in str(m.id)]


@pytest.fixture
def scheduled():
    """Celery beat flushes."""
    current_app.conf.beat_schedule = tasks.beat_schedule()
    yield
    current_app.conf.beat_schedule = {}


@pytest.fixture
def hitcount(settings, redis, scheduled):
    """A good configuration with Redis; returns the dict to spoil."""
    settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}
    return settings.HITCOUNT


def found(settings, **changes) -> list[str]:
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    return ids(run_checks())


def test_good_configurations_are_silent(settings, hitcount):
    assert found(settings) == []
    settings.HITCOUNT = {}
    assert ids(run_checks()) == []


def test_command_shows_the_message_and_the_hint(settings, hitcount):
    settings.HITCOUNT = {"BUFER": "x"}

    with pytest.raises(SystemCheckError, match=r"no setting 'BUFER'(.|\n)*HINT: Did you mean"):
        call_command("check", stdout=io.StringIO())


def test_e001_every_wrong_setting(settings, hitcount):
    assert found(settings, BUFER="x", SLOTS=-1) == ["E001", "E001"]


@pytest.mark.parametrize(
    "changes",
    [
        {"BUFFER": "nowhere.Buffer"},
        {"BUFFER": "datetime.date"},
        {"CACHE_ALIAS": "nowhere"},
        {"CACHE_ALIAS": "memory"},
    ],
)
def test_e002_buffer_that_cannot_be_made(settings, hitcount, changes):
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {**settings.CACHES, "memory": memory}

    assert found(settings, **changes) == ["E002"]


def test_e003_unknown_vendor(monkeypatch):
    monkeypatch.setattr(type(connection._connections["default"]), "vendor", "oracle")

    messages = run_checks()

    assert "E003" in ids(messages)
    assert "is of vendor 'oracle'" in str([m.msg for m in messages if "E003" in str(m.id)])


def test_e003_knows_this_database():
    assert "E003" not in ids(run_checks())


def test_w001_unreachable_redis_without_its_password(settings, hitcount):
    alias = {**settings.CACHES["hitcount"], "LOCATION": "redis://me:sesame@127.0.0.1:1/0"}
    settings.CACHES = {**settings.CACHES, "hitcount": alias}

    assert found(settings) == ["W001"]
    assert "sesame" not in repr(run_checks())


@pytest.mark.parametrize("location", ["127.0.0.1:6379", "redis://localhost:abc/0"])
def test_e002_location_that_is_no_url(settings, hitcount, location):
    other = {**settings.CACHES["hitcount"], "LOCATION": location}
    settings.CACHES = {**settings.CACHES, "other": other}
    assert found(settings) == []

    assert found(settings, CACHE_ALIAS="other") == ["E002"]


@pytest.mark.parametrize("spelling", ["{}", "redis://x/1,{}", "{}?health_check_interval=9"])
def test_w002_another_alias_on_the_same_redis_database(settings, hitcount, spelling):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": spelling.format(alias["LOCATION"])}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert found(settings) == ["W002"]


def test_w002_another_database_of_the_same_redis_is_fine(settings, hitcount):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": alias["LOCATION"].replace("/1", "/2")}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert found(settings) == []


def test_w002_default_cache(settings, hitcount):
    settings.CACHES = {"default": settings.CACHES["hitcount"]}

    assert found(settings, CACHE_ALIAS="default") == ["W002"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("allkeys-lru", ["W003"]), ("volatile-lru", []), ("noeviction", [])],
)
def test_w003_evicting_policy(settings, redis, hitcount, policy, expected):
    redis.config_set("maxmemory-policy", policy)
    try:
        assert found(settings) == expected
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


class TestW004:
    def test_nothing_flushes(self, settings, redis):
        settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}

        assert ids(run_checks()) == ["W004"]

    def test_without_a_buffer_nothing_needs_to(self, settings):
        settings.HITCOUNT = {}

        assert ids(run_checks()) == []

    def test_schedule_in_a_table_is_not_read(self, settings, redis, monkeypatch):
        settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}
        monkeypatch.setattr("django.apps.apps.is_installed", lambda name: True)

        assert ids(run_checks()) == []


def test_ids_are_used_once():
    source = "".join(
        Path(module.__file__).read_text()
        for module in (redis_checks, __import__("django_hitcount.checks").checks)
    )
    used = re.findall(r'id="django_hitcount\.(\w+)"', source)

    assert sorted(used) == sorted(set(used))
    assert set(used) == {"E001", "E002", "E003", "W001", "W002", "W003", "W004"}
