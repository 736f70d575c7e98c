"""What the system checks report about databases without a time limit."""

from __future__ import annotations

import pytest
from django.db import connection

from django_hitcount.checks import ADVISED
from tests.check_messages import hitcount_messages

# Django's checks of fields may query each database.
pytestmark = pytest.mark.django_db(databases="__all__")


class TestW009:
    @pytest.fixture(autouse=True)
    def no_environment(self, monkeypatch):
        for name in ("PGCONNECT_TIMEOUT", "PGOPTIONS", "PGSERVICE"):
            monkeypatch.delenv(name, raising=False)

    def found_with(self, monkeypatch, options):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
        return [m for m in hitcount_messages(deploy=True) if "W009" in str(m.id)]

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="It waits 5 s by default")
    def test_nothing_is_set(self, monkeypatch):
        (message,) = self.found_with(monkeypatch, {})

        assert repr(dict(ADVISED[connection.vendor])) in message.hint

    def test_silent_without_deploy(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", {})

        assert not hitcount_messages()

    def test_silent_on_sqlite(self, monkeypatch):
        if connection.vendor == "sqlite":
            assert not self.found_with(monkeypatch, {})

    @pytest.mark.parametrize(
        "options",
        [
            *map(dict, ADVISED.values()),
            {"connect_timeout": 10},
            {"init_command": "SET max_statement_time=3"},
            {"options": "-c statement_timeout=30s"},
            {"service": "mine"},
            {"read_default_file": "/etc/mysql/mine.cnf"},
        ],
    )
    def test_silent_if_anything_is(self, monkeypatch, options):
        assert not self.found_with(monkeypatch, options)

    def test_silent_if_the_environment_sets_one(self, monkeypatch):
        monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
        if connection.vendor == "postgresql":
            assert not self.found_with(monkeypatch, {})
