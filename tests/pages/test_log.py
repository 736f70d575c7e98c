"""An access log, replayed to the site: each path and each day has what the log says."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from urllib.parse import unquote, unquote_to_bytes

import pytest
import time_machine
from django.test import Client

from django_hitcount import flush_hits, get_hits, hits_by_day, visitors_by_day
from django_hitcount.pages.models import Page, WholeSite
from tests.replay.access_log import NOT_SENT, Asked, log_of
from tests.visiting import is_about

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

REAL_LOG = os.environ.get("HITCOUNT_TEST_LOG")


def replay(log: list[Asked]) -> None:
    with time_machine.travel(log[0].at, tick=False) as clock:
        for number, asked in enumerate(log):
            clock.move_to(asked.at)
            Client().generic(
                asked.method,
                "/",
                headers={} if asked.agent == NOT_SENT else {"user-agent": asked.agent},
                PATH_INFO=unquote_to_bytes(asked.page).decode("latin-1"),
                REMOTE_ADDR=asked.address,
            )
            if number % 250 == 0:
                flush_hits()
        flush_hits()


@pytest.mark.parametrize("source", ["made-up", *([REAL_LOG] if REAL_LOG else [])])
def test_paths_and_visitors_are_those_of_the_log(source, counted, browser, settings):
    # Nobody has a session here: a visitor is an address with a browser.
    log = [asked._replace(name=NOT_SENT) for asked in log_of(source)]
    counted(views={"visitors": True}, new_per_hour=100_000)
    replay(log)

    views = [asked for asked in log if asked.refusal is None]
    of_path = Counter(re.sub("/+", "/", unquote(asked.page)) for asked in views)
    of_day = Counter(asked.day for asked in views)
    visitors = defaultdict(set)
    for asked in views:
        visitors[asked.day].add(asked.visitor)

    assert {page.path: hits for page, hits in get_hits(Page.objects.all()).items()} == of_path
    days = {"first_day": log[0].day, "last_day": log[-1].day}
    assert hits_by_day(WholeSite(), **days) == of_day
    found = visitors_by_day(WholeSite(), **days)
    assert found.keys() == visitors.keys()
    for day, who in visitors.items():
        is_right = found[day] == len(who)
        if settings.HITCOUNT["REDIS"]:  # It estimates.
            is_right = is_about(len(who), found[day]) or abs(found[day] / len(who) - 1) < 0.02
        assert is_right, (day, found[day], len(who))
