"""
Five days of an access log, replayed at the times that it says.

What must be counted is computed in tests/replay, without the package. The log is made up, in the
shape of a real one. HITCOUNT_TEST_LOG may name a real one, which is replayed, too.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from itertools import chain

import pytest

from tests.replay import site
from tests.replay.access_log import NOT_SENT, household, log_of
from tests.replay.counts import COUNTERS
from tests.replay.site import Replay, run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


REAL_LOG = os.environ.get("HITCOUNT_TEST_LOG")
REPLAYS: dict[tuple[str, str], Replay] = {}
"""All tests look at the same replay."""


@pytest.fixture(params=["made-up", *([REAL_LOG] if REAL_LOG else [])])
def source(request):
    return request.param


@pytest.fixture
def replay(source, buffer, redis, settings):
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "COUNTERS": COUNTERS,
        "TRUSTED_PROXIES": 0,
    }
    settings.ROOT_URLCONF = site.__name__
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cache"
    settings.MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ]
    key = (settings.HITCOUNT["REDIS"], source)
    if key not in REPLAYS:
        REPLAYS[key] = run(log_of(source), redis, is_exact=key[0] is None)
    return REPLAYS[key]


def without_repeats(refused):
    return {key: n for key, n in refused.items() if key[-1] != "repeat"}


def of_counter(hits, wanted):
    return {(page, *day): n for (page, counter, *day), n in hits.items() if counter == wanted}


def assert_visitors(found, due, *, is_exact):
    """
    Check that visitors are equal, or as near as estimates by HyperLogLog are: 2 %, or two of a few.

    Two visitors of a page share a register now and then, three pairs of them hardly ever.
    """
    if is_exact:
        assert found == due
        return
    assert found.keys() == due.keys()
    wrong = {
        key: (n, found[key])
        for key, n in due.items()
        if abs(found[key] - n) > min(n - 1, 2 + n / 50)
    }
    assert not wrong
    assert sum(found.values()) == pytest.approx(sum(due.values()), rel=0.01)


def test_made_up_log_has_all_that_a_real_one_has():
    log = log_of("made-up")
    reasons = Counter(asked.refusal for asked in log)
    visits = Counter((asked.visitor, asked.page, asked.day) for asked in log if not asked.refusal)

    assert len({asked.day for asked in log}) == 5
    assert min(reasons["bot"], reasons["method"]) > 50
    assert sum(n for n in visits.values() if n > 1) > 80
    assert {asked.method for asked in log} == {"GET", "HEAD", "POST"}
    assert len({household(asked.address) for asked in log if ":" in asked.address}) > 40
    assert any(asked.agent == NOT_SENT and asked.method == "GET" for asked in log)
    assert not any("logo" in asked.page for asked in log)


def test_refused_requests_by_day_and_reason_are_exact(replay):
    assert without_repeats(replay.found.refused) == without_repeats(replay.due.refused)


def test_hits_of_each_page_and_day_are_exact(replay):
    assert of_counter(replay.found.hits, "views") == of_counter(replay.due.hits, "views")
    assert of_counter(replay.found.totals, "views") == of_counter(replay.due.totals, "views")


def test_series_have_the_hits_of_each_day_of_the_log(source, replay):
    counted = [asked for asked in log_of(source) if asked.method == "GET" and not asked.refusal]
    days = [asked.day for asked in counted]
    first_day, last_day = min(days), max(days)
    lines = {
        first_day + timedelta(days=number): days.count(first_day + timedelta(days=number))
        for number in range((last_day - first_day).days + 1)
    }

    assert len(lines) > 3
    assert replay.series["views"] == lines
    assert replay.series_later == replay.series


def test_report_of_the_admin_has_the_figures_of_the_log(source, replay):
    log = log_of(source)
    days = Counter(str(asked.day) for asked in log if not asked.refusal)
    pages = Counter(asked.page for asked in log if not asked.refusal)
    refused = Counter(asked.refusal for asked in log if asked.refusal)
    top = [(replay.pages[pk], int(hits)) for _, _, _, pk, hits, *_ in replay.report["top"]]

    assert {day: int(hits) for day, hits, *_ in replay.report["days"] if hits != "0"} == days
    assert {reason: int(hits) for reason, _, hits, _ in replay.report["refused"]} == refused
    assert [hits for _, hits in top] == [hits for _, hits in pages.most_common(len(top))]
    assert all(pages[page] == hits for page, hits in top)
    assert len(top) > 5


def test_visitors_of_each_page_and_day(replay):
    assert_visitors(replay.found.visitors, replay.due.visitors, is_exact=replay.is_exact)


def test_visitors_are_the_same_when_their_days_are_closed(replay):
    assert replay.visitors_later == replay.found.visitors


def test_daily_rule_counts_each_visitor_once_a_day(replay):
    found, wanted = (of_counter(counts.hits, "readers") for counts in (replay.found, replay.due))
    missing = {key: n - found.get(key, 0) for key, n in wanted.items()}

    assert found.keys() <= wanted.keys()
    assert min(missing.values()) == 0
    # The filter of Redis may take 1 of 10,000 new visitors for one that it has seen.
    assert sum(missing.values()) <= (0 if replay.is_exact else sum(wanted.values()) / 10_000)


def test_rule_of_seconds_counts_each_visitor_once_in_an_interval(replay):
    assert of_counter(replay.found.hits, "sessions") == of_counter(replay.due.hits, "sessions")


def test_each_repeat_is_a_refused_hit(replay):
    found, wanted = (sum(counts.refused.values()) for counts in (replay.found, replay.due))
    counted, due = (sum(counts.hits.values()) for counts in (replay.found, replay.due))

    assert found + counted == wanted + due


def test_nothing_that_is_stored_identifies_a_visitor(source, replay):
    log = log_of(source)
    visitors = [(asked.address, household(asked.address), asked.agent, asked.name) for asked in log]
    traces = {*chain(*visitors, replay.session_keys)}
    # What is shorter, such as "-", may stand anywhere.
    traces = {trace for trace in traces if len(trace) > 5}

    assert b"views" in replay.kept
    assert b"readers" in replay.kept
    assert len(traces) > 100
    assert not [trace for trace in traces if trace.encode() in replay.kept]
