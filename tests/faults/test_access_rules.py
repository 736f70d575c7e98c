"""A user of Redis who may only do what docs/operations.rst lists."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
import redis as redis_py
from django.template import Context, Template

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import MissedRecord
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitSlot
from django_hitcount.reading import get_hits, get_visitors, refresh_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.status import get_flush_status
from django_hitcount.throttle import Throttle
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.servers import HOST
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
PAGE = Template("{% load hitcount %}{% hit_count a %} {% visitors a days=7 %}")
RULES = [{"repeat": "daily", "per_address": 20}, {"repeat": 60}, {"repeat": "always"}]


def listed() -> list[str]:
    """The commands that the user needs."""
    section = (ROOT / "docs" / "operations.rst").read_text().split("\nAccess rules.\n")[1]
    return re.findall(r"``([A-Z ]+)``", section.split("\nCron\n")[0])


@pytest.fixture
def limited_user(own_valkey, settings):
    client = redis_py.Redis(HOST, own_valkey.port)
    commands = [f"+{command.lower().replace(' ', '|')}" for command in listed()]
    client.acl_setuser(
        "counter", enabled=True, passwords=["+secret"], keys=["hitcount:*"], commands=commands
    )
    change_alias(settings, LOCATION=f"redis://counter:secret@{HOST}:{own_valkey.port}/1")
    get_buffer.cache_clear()


def test_scripts_call_no_other_command():
    directory = ROOT / "django_hitcount" / "buffers" / "redis" / "lua"
    source = "\n".join(path.read_text() for path in directory.glob("*.lua"))
    # Those of variables are among the others.
    called = {*re.findall(r"\b(?:call|pcall|run_or_replace)\('([A-Z]+)'", source)}

    assert called <= {*listed()}
    sent_alone = {"EVAL", "EVALSHA", "INFO", "MGET", "SCAN", "SET", "PING", "UNLINK"}
    assert {*listed()} - called - sent_alone == {"SELECT"}


@pytest.mark.parametrize("options", RULES, ids=["daily", "seconds", "always"])
@pytest.mark.usefixtures("limited_user")
def test_user_counts_flushes_and_reads(settings, options, caplog):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {**options, "visitors": True}}}
    articles = [Article.objects.create(title=title) for title in ("Tea", "Coffee")]
    for _ in range(2):
        for visitor in (1, 2, 3):
            PAGE.render(Context({"a": articles[0], "request": request_of(visitor)}))
        record_hits(articles, amount=2)
        record_hit(articles[1], amount=-1, at=day_of() - datetime.timedelta(days=1))
    assert not HitSlot.objects.exists()  # Redis has taken all of them.
    flush_hits()
    compact()
    refresh_hits()
    hits = 6 if options["repeat"] == "always" else 3
    assert get_hits(articles) == {articles[0]: hits + 4, articles[1]: 2}
    assert get_visitors([articles[0]], first_day=day_of(), last_day=day_of())[articles[0]] == 3
    articles[0].delete()
    flush_hits()
    assert Throttle("mail", 60).admit()

    assert get_flush_status().pending_counters == 0
    assert not MissedRecord.objects.exists()
    assert "django_hitcount.W001" not in [
        message.id for message in get_buffer().check(with_server=True)
    ]
    assert not caplog.records
    assert not get_buffer()._breaker.is_open
