"""What the report says about hits that wait in the buffer."""

from __future__ import annotations

import datetime
import html
from dataclasses import replace

import pytest
from django.test import TestCase
from django.utils import timezone

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from django_hitcount.status import get_flush_status
from tests.admin.test_report import URL as REPORT
from tests.app.models import Article
from tests.cache_alias import NOWHERE, change_alias

URL = f"{REPORT}?period=today"
"""The report that shows hits which were recorded now."""


def record(article, hits):
    """Record hits now, by the clock that Redis has, too."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        record_hit(article, amount=hits)


def make(hits):
    article = Article.objects.create(title="Tea")
    record(article, hits)
    return article


def test_without_redis_no_hits_wait(admin, text):
    make(1)

    assert "Without Redis no hits wait" in text(admin.get(URL))


@pytest.mark.parametrize("use_tz", [True, False])
def test_hits_that_wait_in_redis_are_in_the_totals(admin, text, redis_buffer, settings, use_tz):
    settings.USE_TZ = use_tz
    article = make(3)
    flush_hits()
    record(article, 2)
    page = text(admin.get(URL))

    assert "Hits so far 5 " in page
    assert "Show today, which has 5 hits so far." in text(admin.get(REPORT))
    assert "Counts with waiting hits 1 Oldest waiting hit less than a minute ago" in page
    assert "Last written to the database less than a minute ago" in page
    assert "Charts and totals include waiting hits." in page


def test_before_the_first_flush_nothing_is_wrong(admin, text, redis_buffer):
    make(2)
    page = admin.get(URL)

    assert "Last written to the database None yet" in text(page)
    assert "No object has hits in these days." in text(page)
    assert "hitcount-alert" not in page.content.decode()


@pytest.fixture
def change_status(monkeypatch):
    """Let the report read another status."""

    def change_status(**changes):
        monkeypatch.setattr(
            "django_hitcount.admin.report.get_flush_status",
            lambda: replace(get_flush_status(), **changes),
        )

    return change_status


@pytest.mark.parametrize(("minutes", "is_alert"), [(14, False), (16, True)])
def test_hits_that_wait_for_long_are_named(
    admin, text, redis_buffer, change_status, minutes, is_alert
):
    make(3)
    change_status(oldest_pending_at=timezone.now() - datetime.timedelta(minutes=minutes))

    page = html.unescape(text(admin.get(URL)))
    assert f"Oldest waiting hit {minutes} minutes ago" in page
    late = "Hits have been waiting for 16 minutes. For whoever runs the site: does Celery"
    assert (late in page) == is_alert


def test_a_batch_that_is_stuck_is_named(admin, text, redis_buffer, change_status):
    make(3)
    since = timezone.now() - datetime.timedelta(minutes=7)
    change_status(stuck_batch_since=since, oldest_pending_at=since)

    page = html.unescape(text(admin.get(URL)))
    assert "Writing hits to the database began 7 minutes ago and has not ended." in page
    assert "Hits have been waiting" not in page


def test_a_report_is_shown_while_redis_is_away(admin, text, redis_buffer, settings):
    make(3)
    flush_hits()
    change_alias(settings, LOCATION=NOWHERE)
    page = text(admin.get(URL))

    assert "Hits so far 3 " in page
    assert "Redis does not answer." in page
    assert "include waiting hits" not in page
    assert "The objects and the refused hits are as of the last writing to the database." in page
