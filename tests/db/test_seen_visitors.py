"""Visitors in the tables, when hits do not wait in Redis."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import DailyVisitors, SeenVisitor
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.visiting import DAY, request_of, set_rule

pytestmark = pytest.mark.django_db(transaction=True)


def test_counter_that_is_gone_leaves_its_visitors_to_the_end_of_the_day(redis, settings):
    counters = {"views": {"visitors": True}, "likes": {"visitors": True}}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    article, other = (Article.objects.create(title=title) for title in ("Tea", "Milk"))
    record_hit(article, request_of(1), counter="likes")
    article.record_hit(request_of(1))
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "REDIS": "hitcount",
        "COUNTERS": {"views": {"visitors": True}},
    }
    other.delete()
    flush_hits()

    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 1
    assert [*SeenVisitor.objects.values_list("counter", flat=True)] == ["likes"]


@pytest.mark.parametrize("days", [0, 1])
def test_visitors_of_open_days_are_known_after_a_compaction(settings, days):
    set_rule(settings, "daily", visitors=True)
    article, day = Article.objects.create(title="Tea"), day_of() - datetime.timedelta(days=days)
    article.record_hit(request_of(1), at=day)
    compact()

    assert article.record_hit(request_of(1), at=day).refusal == "repeat"


def test_rule_alone_leaves_no_visitors(settings):
    set_rule(settings, "daily", visitors=False)
    Article.objects.create(title="Tea").record_hit(request_of(1), at=DAY)
    compact()

    assert not SeenVisitor.objects.exists()
    assert not DailyVisitors.objects.exists()


def test_one_visitor_looks_like_two_on_two_objects(settings):
    """Rows of one visitor have nothing in common, so visitors cannot be followed."""
    set_rule(settings, "daily", visitors=True)
    record_hits([Article.objects.create(title=title) for title in ("Tea", "Milk")], request_of(1))

    assert len({*SeenVisitor.objects.values_list("visitor", flat=True)}) == 2


def test_visitors_of_today_come_along(redis, settings):
    options = {"COUNTERS": {"views": {"repeat": "daily", "visitors": True}}}
    settings.HITCOUNT = {**settings.HITCOUNT, **options}
    article = Article.objects.create(title="Tea")
    for n in range(3):
        article.record_hit(request_of(n))
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "REDIS": "hitcount",
    }
    flush_hits()

    assert not SeenVisitor.objects.exists()
    assert article.record_hit(request_of(0)).refusal == "repeat"
    assert article.record_hit(request_of(7)).counted
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 4
    flush_hits()
    assert DailyVisitors.objects.get().count == 4
