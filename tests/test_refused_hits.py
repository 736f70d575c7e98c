"""How many hits were refused, by day, counter and reason."""

from __future__ import annotations

import io

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from django_hitcount.db.tables import RefusedHitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import Hit, record_hit, record_hits
from django_hitcount.refusals import do_not_track
from django_hitcount.status import RefusedHits, get_refused_hits
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.refusals.reasons import get
from tests.tables import daily_sums, slot_sums
from tests.visiting import DAY, NOON, refused_today, request_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_fails")]


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (RequestFactory(headers=BROWSER).head("/"), "method"),
        (get(Purpose="prefetch"), "prefetch"),
        (get(**{"User-Agent": "curl/8.5.0"}), "bot"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_hit_leaves_the_totals_and_is_counted_under_its_name(article, request_, name):
    record_hit(article, get())
    hits = [record_hit(article, request_) for _ in range(2)]
    flush_hits()

    assert hits == [Hit(False, name, 1)] * 2
    assert article.hits == 1
    assert slot_sums([article]) == daily_sums([article]) == {article: 1}
    assert refused_today() == {("views", name): 2}


def test_caller_decides_for_each_object(article):
    other = Article.objects.create(title="Coffee")
    hits = record_hits([article, other], get(), refusals=[lambda context: context.obj == other])
    flush_hits()

    assert hits == [Hit(True, None, 1), Hit(False, "caller", 0)]
    assert slot_sums([article, other]) == {article: 1, other: 0}
    assert refused_today() == {("views", "caller"): 1}


def test_mixin_takes_a_callable_too(article):
    assert article.record_hit(get(), refusals=[lambda context: True]).refusal == "caller"
    assert article.record_hit(get(), refusals=[lambda context: False]).refusal is None


def test_refused_hits_by_day_counter_and_reason(article, rule):
    rule("daily")
    bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"})
    for _ in range(3):
        article.record_hit(bot.get("/"), at=DAY)
    article.record_hit(bot.head("/"), at=DAY)
    article.record_hit(request_of(1), at=DAY)
    article.record_hit(request_of(1), at=DAY)
    flush_hits()
    expected = [
        RefusedHits(DAY, "views", "bot", 3),
        RefusedHits(DAY, "views", "method", 1),
        RefusedHits(DAY, "views", "repeat", 1),
    ]

    assert get_refused_hits(first_day=DAY, last_day=DAY) == expected
    compact()
    assert get_refused_hits(first_day=DAY, last_day=DAY) == expected
    assert {*RefusedHitSlot.objects.values_list("slot", flat=True)} == {0}
    assert article.hits == 1


def test_taking_back_is_refused_without_a_count(article, rule):
    bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"}).get("/")
    for amount in (2, -5):
        assert article.record_hit(bot, amount=amount).refusal == "bot"

    assert refused_today() == {("views", "bot"): 2}
    assert article.hits == 0


def test_command_lists_refused_hits(article, rule):
    with time_machine.travel(NOON):
        article.record_hit(RequestFactory().get("/"))
        flush_hits()
        out = io.StringIO()
        call_command("refused_hits", stdout=out)

        line = out.getvalue()
        assert "2026-03-10  views         bot" in line
        assert line.endswith("1  The user agent is that of a bot, or empty.\n")


def test_command_knows_the_reason_of_what_only_a_call_refuses_for(article):
    article.record_hit(get(DNT="1"), refusals=[do_not_track])
    flush_hits()
    out = io.StringIO()
    call_command("refused_hits", stdout=out)

    assert out.getvalue().endswith(f"1  {do_not_track.reason}\n")


def test_command_without_refused_hits(buffer):
    out = io.StringIO()
    call_command("refused_hits", days=3, stdout=out)

    assert out.getvalue() == "No hits were refused in the last 3 days.\n"
    with pytest.raises(CommandError, match="Invalid number of days: 0"):
        call_command("refused_hits", days=0)


def test_command_for_one_day(buffer):
    out = io.StringIO()
    call_command("refused_hits", days=1, stdout=out)

    assert out.getvalue() == "No hits were refused today.\n"
