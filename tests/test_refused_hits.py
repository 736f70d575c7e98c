"""How many hits were refused, by day, counter and reason."""

from __future__ import annotations

import io

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush
from django_hitcount.models import RefusedHitSlot
from django_hitcount.refused_hits import RefusedHits, refused_between
from tests.app.models import Article
from tests.visiting import DAY, NOON, refused_today, request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


def test_by_day_counter_and_reason(article, rule):
    rule("daily")
    bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"})
    for _ in range(3):
        article.record_hit(bot.get("/"), at=DAY)
    article.record_hit(bot.head("/"), at=DAY)
    article.record_hit(request_of(1), at=DAY)
    article.record_hit(request_of(1), at=DAY)
    flush()
    expected = [
        RefusedHits(DAY, "views", "bot", 3),
        RefusedHits(DAY, "views", "method", 1),
        RefusedHits(DAY, "views", "repeat", 1),
    ]

    assert refused_between(DAY, DAY) == expected
    compact()
    assert refused_between(DAY, DAY) == expected
    assert {*RefusedHitSlot.objects.values_list("slot", flat=True)} == {0}
    assert article.hits == 1


def test_taking_back_is_refused_without_a_count(article, rule):
    bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"}).get("/")
    for amount in (2, -5):
        assert article.record_hit(bot, amount=amount).refusal == "bot"

    assert refused_today() == {("views", "bot"): 2}
    assert article.hits == 0


def test_command(article, rule):
    with time_machine.travel(NOON):
        article.record_hit(RequestFactory().get("/"))
        flush()
        out = io.StringIO()
        call_command("refused_hits", stdout=out)

        line = out.getvalue()
        assert "2026-03-10  views         bot" in line
        assert line.endswith("1  The user agent is that of a bot, or empty.\n")


def test_command_without_refused_hits(buffer):
    out = io.StringIO()
    call_command("refused_hits", days=3, stdout=out)

    assert out.getvalue() == "No hits were refused in the last 3 days.\n"
    with pytest.raises(CommandError, match="0 is no number of days"):
        call_command("refused_hits", days=0)
