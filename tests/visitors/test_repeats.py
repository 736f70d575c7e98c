"""Which hits are repeats, and do not count."""

from __future__ import annotations

import datetime
import itertools

import pytest
import time_machine
from django.db import transaction
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.visitors import hashing
from tests.app.models import Article, Page, Photo, Plain, Small
from tests.redis_server import round_trips
from tests.visiting import DAY, refused_today, request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_visitor_counts_once(article, rule, repeat):
    rule(repeat)
    hits = [article.record_hit(request_of(n)) for n in (1, 1, 2, 1, 2)]

    assert [hit.counted for hit in hits] == [True, False, True, False, False]
    assert [hit.refusal for hit in hits] == [None, "repeat", None, "repeat", "repeat"]
    assert [hit.total for hit in hits] == [1, 1, 2, 2, 2]
    assert refused_today() == {("views", "repeat"): 3}
    assert article.hits == 2


def test_always_is_the_default(article):
    assert [article.record_hit(request_of(1)).total for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("repeat", [3600, "daily"])
@pytest.mark.parametrize("make", [Small, Photo, lambda: Page(path="a:b|É"), Article])
def test_every_type_of_key(buffer, rule, make, repeat):
    rule(repeat)
    obj = make()
    obj.save(force_insert=True)

    assert [obj.record_hit(request_of(1)).counted for _ in range(2)] == [True, False]


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_each_object_and_counter_by_itself(article, rule, settings, repeat):
    rule(repeat)
    counters = {name: {"repeat": repeat} for name in ("views", "downloads")}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    other = Plain.objects.create(name="other")
    again = [
        record_hit(obj, request_of(1), counter=counter).counted
        for _ in range(2)
        for obj in (article, other)
        for counter in counters
    ]

    assert again == [True] * 4 + [False] * 4


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_many_objects_at_once(article, rule, repeat):
    rule(repeat)
    articles = [article, *(Article.objects.create(title=str(n)) for n in range(30))]
    record_hit(article, request_of(1))
    hits = record_hits(articles, request_of(1))

    assert [hit.refusal for hit in hits] == ["repeat"] + [None] * 30
    assert [hit.total for hit in hits] == [1] * 31
    assert refused_today() == {("views", "repeat"): 1}


@pytest.mark.parametrize(
    ("seconds_before_midnight", "counts"), [(0.1, False), (59, False), (61, True)]
)
def test_hit_overtaken_at_midnight_is_a_repeat(article, rule, seconds_before_midnight, counts):
    """Its process has a late clock, or has waited."""
    rule(3600)
    midnight = datetime.datetime(2026, 3, 10, 23, tzinfo=datetime.UTC)
    with time_machine.travel(midnight, tick=False):
        assert article.record_hit(request_of(1)).counted
    late = midnight - datetime.timedelta(seconds=seconds_before_midnight)
    with time_machine.travel(late, tick=False):
        assert article.record_hit(request_of(1)).counted is counts


def test_list_across_midnight_has_one_moment(buffer, rule, monkeypatch):
    """The clock goes on while visitors are hashed, and the key rotates meanwhile."""
    rule(7200, PARTITIONS=1)
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(6))
    record_hits(articles)
    midnight = datetime.datetime(2026, 4, 30, 21, 59, 59, 999_700, tzinfo=datetime.UTC)
    for start in (midnight, midnight + datetime.timedelta(seconds=7200)):
        ticks = itertools.count()
        monkeypatch.setattr(
            hashing.timezone,
            "now",
            lambda start=start, ticks=ticks: (
                start + datetime.timedelta(microseconds=100 * next(ticks))
            ),
        )
        record_hits(articles, request_of(start.hour))
    monkeypatch.undo()
    flush_hits()

    assert [article.hits for article in articles] == [3] * 6


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_same_object_twice_at_once(article, rule, repeat):
    rule(repeat)
    other = Article.objects.create(title="Milk")
    hits = record_hits([article, other, article, article], request_of(1))

    assert [hit.refusal for hit in hits] == [None, None, "repeat", "repeat"]
    assert (article.hits, other.hits) == (1, 1)


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_hits_without_a_visitor_are_no_repeats(article, rule, repeat):
    rule(repeat, VISITOR_IDENTITY=["user"])

    assert [article.record_hit(request_of(1)).counted for _ in range(2)] == [True, True]
    assert [article.record_hit().counted for _ in range(2)] == [True, True]


def test_taking_back_is_no_repeat(article, rule):
    rule("daily")
    article.record_hit(request_of(1))

    assert article.record_hit(request_of(1), amount=-1).total == 0
    assert article.record_hit(request_of(2), amount=-1).total == -1
    assert article.record_hit(request_of(2)).counted


def test_daily_counts_again_the_next_day_whatever_the_key(article, rule):
    for rotation in ("day", "month", "never"):
        rule("daily", VISITOR_KEY_ROTATION=rotation)
        request = request_of({"day": 1, "month": 2, "never": 3}[rotation])
        days = [DAY, DAY, DAY + datetime.timedelta(days=1), DAY]
        counted = [article.record_hit(request, at=day).counted for day in days]

        assert counted == [True, False, True, False]


def test_daily_turns_at_midnight_of_the_site(article, rule):
    rule("daily")
    before_midnight = datetime.datetime(2026, 3, 10, 22, 59, tzinfo=datetime.UTC)
    counted = []
    for minutes in (0, 0, 1, 2):  # The first two on the 10th in Berlin.
        with time_machine.travel(before_midnight + datetime.timedelta(minutes=minutes)):
            counted.append(article.record_hit(request_of(1)).counted)

    assert counted == [True, False, True, False]


@pytest.mark.parametrize("rotation", ["day", "month"])
def test_seconds_go_on_while_the_key_rotates(article, rule, rotation):
    rule(7200, VISITOR_KEY_ROTATION=rotation)
    # Midnight in Berlin is 22:00 in UTC; the month ends there, too.
    with time_machine.travel(datetime.datetime(2026, 4, 30, 21, 50, tzinfo=datetime.UTC)):
        assert article.record_hit(request_of(1)).counted
    with time_machine.travel(datetime.datetime(2026, 4, 30, 22, 10, tzinfo=datetime.UTC)):
        assert article.record_hit(request_of(1)).refusal == "repeat"
        assert article.record_hit(request_of(2)).counted


def test_repeats_of_a_transaction_are_refused_at_commit(article, rule):
    rule("daily")
    for _ in range(2):
        with transaction.atomic():
            assert article.record_hit(request_of(1)).counted

    assert article.hits == 1
    assert refused_today() == {("views", "repeat"): 1}


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_rollback_is_not_remembered(article, rule, repeat):
    rule(repeat)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        article.record_hit(request_of(1))
        raise ZeroDivisionError

    assert article.record_hit(request_of(1)).counted


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_page_shows_what_was_counted(article, rule, repeat):
    rule(repeat)
    template = Template("{% load hitcount %}{% hit_count a %} {% hit_count a %}")
    pages = [template.render(Context({"a": article, "request": request_of(1)})) for _ in range(2)]

    assert pages == ["1 1", "1 1"]


def test_refused_for_another_reason_is_not_remembered(article, rule):
    rule("daily", visitors=True)
    article.record_hit(request_of(1), refusals=[lambda context: True])

    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 0
    assert article.record_hit(request_of(1)).counted
    assert refused_today() == {("views", "caller"): 1}


def test_one_round_trip(redis, redis_buffer, settings, django_assert_num_queries):
    options = {"repeat": "daily", "visitors": True}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
    record_hits(articles, request_of(1))

    for visitor, counted in [(1, False), (2, True)]:
        with round_trips(redis) as trips, django_assert_num_queries(0):
            assert (
                record_hit(articles[0], request_of(visitor), once_per_request=True).counted
                is counted
            )
        assert trips() == 1


def test_refused_hit_is_one_round_trip(redis, redis_buffer, django_assert_num_queries):
    article = Article.objects.create(title="Tea")
    article.record_hit()
    bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"}).get("/")

    with round_trips(redis) as trips, django_assert_num_queries(0):
        hit = article.record_hit(bot)
    assert (trips(), hit.refusal, hit.total) == (1, "bot", 1)
