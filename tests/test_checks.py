"""What the system checks report about the settings of a project."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from celery import current_app
from celery.beat import ScheduleEntry
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from django_hitcount import checks as checks_of_projects
from django_hitcount.buffers.redis import checks
from tests.check_messages import hitcount_messages, ids, ids_with

# Django's checks of fields may query each database.
pytestmark = pytest.mark.django_db(databases="__all__")


DAY = 24 * 3600


def test_good_configurations_are_silent(settings, hitcount):
    assert ids_with(settings) == []
    settings.HITCOUNT = {}
    assert ids(run_checks()) == []


def test_command_shows_the_message_and_the_hint(settings, hitcount):
    settings.HITCOUNT = {"REDISS": "x"}

    with pytest.raises(SystemCheckError, match=r"HITCOUNT: 'REDISS'(.|\n)*HINT: Did you mean"):
        call_command("check", stdout=io.StringIO())


def test_e001_every_wrong_setting(settings, hitcount):
    assert ids_with(settings, BUFER="x", SLOTS=-1) == ["E001", "E001"]


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"COUNTERS": {"views": {"repeat": -60}}}, "['repeat']: -60.", "seconds from 1 to"),
        ({"COUNTERS": {"views": {"repeat": DAY}}}, "['repeat']: 86400.", "'month' or 'never'"),
        (
            {"TRUSTED_PROXIES": ["10.0.0.0/40"]},
            "network: '10.0.0.0/40'",
            '("192.0.2.0/24")',
        ),
        ({"REFUSALS": "bot"}, "['REFUSALS']: 'bot'.", "list of dotted paths"),
        (
            {"REFUSALS": [{"name": "x"}]},
            "['REFUSALS'] contains an invalid item: {'name': 'x'}.",
            '{"NAME": path, "OPTIONS"',
        ),
        ({"BOT_USER_AGENTS": ["("]}, "invalid regular expression: '('", "Put a backslash"),
        (
            {"VISITOR_IDENTITY": "user"},
            "_IDENTITY']: 'user'.",
            '["user", "session", "address"]',
        ),
    ],
)
def test_e001_says_the_value_and_the_fix(settings, hitcount, changes, message, hint):
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    (found,) = hitcount_messages()

    assert found.id == "django_hitcount.E001"
    assert message in found.msg
    assert hint in found.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"REDIS": "nowhere"},
        {"REDIS": "memory"},
    ],
)
def test_e002_buffer_that_cannot_be_made(settings, hitcount, changes):
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {**settings.CACHES, "memory": memory}

    assert ids_with(settings, **changes) == ["E002"]


def test_e003_unknown_vendor(monkeypatch):
    monkeypatch.setattr(type(connection._connections["default"]), "vendor", "oracle")

    messages = run_checks()

    assert "E003" in ids(messages)
    assert "vendor 'oracle' is not supported" in str(
        [m.msg for m in messages if "E003" in str(m.id)]
    )


def test_e006_no_autocommit(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

    (message,) = hitcount_messages()
    assert message.id == "django_hitcount.E006"
    assert "'default'" in message.msg


def test_e003_is_silent_for_the_database_of_the_tests():
    assert "E003" not in ids(run_checks())


def test_queryset_in_a_class_body_leaves_wrong_settings_to_the_checks(settings):
    settings.HITCOUNT = {"COUNTRES": {}}
    settings.ROOT_URLCONF = "tests.listing_urls"  # Imported by the checks, not before.
    sys.modules.pop("tests.listing_urls", None)

    assert ids(run_checks()) == ["E001"]


def test_project_without_urls(settings, hitcount):
    """Such as one that only has workers."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "rest_framework"]
    del settings.ROOT_URLCONF

    assert [*checks_of_projects.check_project(None)] == []
    assert [*checks_of_projects.check_orderings(None)] == []


def test_ids_are_used_once():
    source = "".join(
        Path(module.__file__).read_text()
        for module in (
            checks,
            __import__("django_hitcount.checks").checks,
        )
    )
    used = re.findall(r'id="django_hitcount\.(\w+)"', source)

    assert sorted(used) == sorted(set(used))
    assert set(used) == {
        "E001",
        "E002",
        "E003",
        "E004",
        "E005",
        "E006",
        "E011",
        "W001",
        "W002",
        "W003",
        "W004",
        "W005",
        "W006",
        "W008",
        "W009",
    }


class TestW008:
    """Other settings say that the site is behind a proxy, and TRUSTED_PROXIES does not."""

    LIMITED = {"likes": {}, "views": {"repeat": "daily"}}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SECURE_PROXY_SSL_HEADER", ("HTTP_X_FORWARDED_PROTO", "https")),
            ("USE_X_FORWARDED_HOST", True),
        ],
    )
    def test_all_would_share_a_limit(self, settings, name, value):
        setattr(settings, name, value)

        assert ids_with(settings, COUNTERS=self.LIMITED, BEACON_HITS_PER_MINUTE=None) == ["W008"]
        (message,) = hitcount_messages()
        assert name in message.msg
        assert "Counters: 'views'." in message.msg
        assert "HITCOUNT['TRUSTED_PROXIES']" in message.hint

    def test_cached_pages_have_a_limit_of_their_own(self, settings):
        settings.USE_X_FORWARDED_HOST = True

        assert ids_with(settings, COUNTERS={}) == ["W008"]
        (message,) = hitcount_messages()
        assert "Counters: all together with {% hit_beacon %}." in message.msg

        settings.ROOT_URLCONF = "tests.listing_urls"  # No page can send a hit.
        assert ids_with(settings, COUNTERS={}) == []

    def test_silent_if_it_is_named(self, settings):
        settings.USE_X_FORWARDED_HOST = True

        assert ids_with(settings, COUNTERS=self.LIMITED, TRUSTED_PROXIES=1) == []

    def test_silent_without_a_limit(self, settings):
        settings.USE_X_FORWARDED_HOST = True
        settings.ROOT_URLCONF = "tests.listing_urls"

        assert (
            ids_with(settings, COUNTERS={"views": {"repeat": "daily", "per_address": None}}) == []
        )
        assert ids_with(settings, COUNTERS={}) == []

    def test_silent_without_a_proxy(self, settings):
        assert ids_with(settings, COUNTERS=self.LIMITED) == []


class TestW004:
    def test_nothing_flushes(self, settings, redis):
        settings.HITCOUNT = {"REDIS": "hitcount"}

        (message,) = hitcount_messages()
        assert ids([message]) == ["W004"]
        assert "no entry for django_hitcount.flush_hits and django_hitcount.c" in message.msg
        assert "app.conf.beat_schedule |= django_hitcount" in message.hint

    def test_schedule_may_have_entries_of_celery(self, settings, hitcount):
        schedule = current_app.conf.beat_schedule
        for name, entry in [*schedule.items()]:
            schedule[name] = ScheduleEntry(name, entry["task"], schedule=60, app=current_app)

        assert hitcount_messages() == []

    @pytest.mark.parametrize("name", ["flush_hits", "compact_hits"])
    def test_one_task_is_missing(self, settings, hitcount, name):
        del current_app.conf.beat_schedule[f"django_hitcount.{name}"]

        (message,) = hitcount_messages()
        assert f"no entry for django_hitcount.{name}." in message.msg

    def test_without_a_buffer_nothing_needs_to(self, settings):
        settings.HITCOUNT = {}

        assert ids(run_checks()) == []

    def test_schedule_in_a_table_is_not_read(self, settings, redis, monkeypatch):
        settings.HITCOUNT = {"REDIS": "hitcount"}
        monkeypatch.setattr("django.apps.apps.is_installed", lambda name: True)

        assert ids(run_checks()) == []
