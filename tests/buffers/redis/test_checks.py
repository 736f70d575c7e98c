"""What the system checks report about Redis."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks

from tests.cache_alias import NOWHERE, change_alias
from tests.check_messages import ids, ids_of_deployment, ids_with
from tests.redis_server import sends

# Django's checks of fields may query each database.
pytestmark = pytest.mark.django_db(databases="__all__")


def test_w001_unreachable_redis_without_its_password(settings, hitcount):
    change_alias(settings, LOCATION=NOWHERE.replace("redis://", "redis://me:sesame@"))

    assert ids_of_deployment() == ["W001"]
    assert "sesame" not in repr(run_checks(include_deployment_checks=True))


def test_no_other_check_asks_the_server(settings, hitcount):
    """Not that of makemigrations, of runserver, or of an image that is built without servers."""
    with sends() as sent:
        assert ids(run_checks()) == []
    assert sent() == 0


@pytest.mark.parametrize("location", ["127.0.0.1:6379", "redis://localhost:abc/0"])
def test_e002_location_that_is_no_url(settings, hitcount, location):
    other = {**settings.CACHES["hitcount"], "LOCATION": location}
    settings.CACHES = {**settings.CACHES, "other": other}
    assert ids_with(settings) == []

    assert ids_with(settings, REDIS="other") == ["E002"]


@pytest.mark.parametrize("spelling", ["{}", "redis://x/1,{}", "{}?health_check_interval=9"])
def test_w002_another_alias_on_the_same_redis_database(settings, hitcount, spelling):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": spelling.format(alias["LOCATION"])}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert ids_with(settings) == ["W002"]


def test_w002_another_database_of_the_same_redis_is_fine(settings, hitcount):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": alias["LOCATION"].replace("/1", "/2")}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert ids_with(settings) == []


def test_w002_default_cache(settings, hitcount):
    settings.CACHES = {"default": settings.CACHES["hitcount"]}

    assert ids_with(settings, REDIS="default") == ["W002"]


@pytest.mark.parametrize(
    ("policy", "evicts"),
    [
        *[("allkeys-lru", True), ("allkeys-lfu", True), ("allkeys-random", True)],
        *[("volatile-lru", False), ("noeviction", False)],
    ],
)
def test_w003_evicting_policy(redis, hitcount, policy, evicts):
    redis.config_set("maxmemory-policy", policy)
    try:
        assert ("W003" in ids_of_deployment()) is evicts
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"save": "3600 1", "appendonly": "no"}, ["W005"]),
        ({"save": "3600 1", "appendonly": "yes"}, []),
        ({"save": "", "appendonly": "no"}, ["W005"]),
    ],
)
def test_w005_changes_that_are_not_on_disk(redis, hitcount, options, expected):
    for name, value in options.items():
        redis.config_set(name, value)
    try:
        assert ids_of_deployment() == expected
    finally:
        redis.config_set("save", "")
        redis.config_set("appendonly", "no")


def test_w006_run_id_that_is_hidden(settings, redis, hitcount):
    redis.acl_setuser("nobody", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-info"])
    location = settings.CACHES["hitcount"]["LOCATION"]
    change_alias(settings, LOCATION=location.replace("redis://", "redis://nobody:x@"))
    try:
        assert ids_of_deployment() == ["W006"]
    finally:
        redis.acl_deluser("nobody")
