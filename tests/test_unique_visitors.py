"""How many different visitors there were."""

from __future__ import annotations

import datetime
import json
import pickle

import pytest
import time_machine
from django.template import Context, Template

from django_hitcount.counters.days import day_of
from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyVisitors, SeenVisitor
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.numbers import read_numbers
from django_hitcount.reading import Visitors, get_visitors
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.visiting import DAY, NOON, is_about, request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


def test_counted_once_a_day(article, rule):
    rule(visitors=True)
    visit(article, (1, 1, 2, 3, 1))

    assert (article.hits, article.get_visitors(first_day=day_of(), last_day=day_of())) == (5, 3)


def test_flush_and_compaction_change_nothing(article, rule):
    rule(visitors=True)
    days = [DAY + datetime.timedelta(days=n) for n in range(3)]
    for n, day in enumerate(days, start=1):
        visit(article, range(n), at=day)
    seen = []
    for step in (lambda: None, flush_hits, compact, flush_hits):
        step()
        seen.append([article.get_visitors(first_day=day, last_day=day) for day in days])

    assert seen == [[1, 2, 3]] * 4
    assert not SeenVisitor.objects.exists()
    assert [*DailyVisitors.objects.order_by("day").values_list("count", flat=True)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("rotation", "redis_says", "tables_say"),
    [
        ("day", Visitors(6, 3), Visitors(6, 3)),
        ("month", Visitors(3, 1), Visitors(6, 3)),
        ("never", Visitors(3, 1), Visitors(6, 3)),
    ],
)
@pytest.mark.parametrize("is_flushed", [False, True])
def test_range_says_whether_visitors_could_be_compared(
    article, rule, rotation, redis_says, tables_say, is_flushed
):
    buffer = rule(visitors=True, VISITOR_KEY_ROTATION=rotation)
    days = [DAY + datetime.timedelta(days=n) for n in range(3)]
    for n, day in enumerate(days, start=1):
        record_hits([article], request_of(99), at=day - datetime.timedelta(days=99))
        visit(article, range(n), at=day)
    if is_flushed:
        flush_hits()

    says = redis_says if buffer.keeps_hits else tables_say
    found = article.get_visitors(first_day=days[0], last_day=days[-1])
    assert (found, found.spans) == (says, says.spans)
    assert found.is_distinct is (says.spans == 1)


@pytest.mark.parametrize(("n", "text"), [(0, "nobody"), (1, "1 visitor"), (2, "2 visitors, many")])
def test_result_is_a_number_in_templates(n, text):
    template = Template(
        "{% if v %}{{ v }} visitor{{ v|pluralize }}{% else %}nobody{% endif %}"
        "{% if v > 1 %}, many{% endif %}"
    )

    assert template.render(Context({"v": Visitors(n, 1)})) == text


def test_result_is_a_number_with_the_spans():
    found = pickle.loads(pickle.dumps(Visitors(1200, 7)))

    assert (found, found.spans, found.is_distinct) == (1200, 7, False)
    assert (str(found), repr(found)) == ("1200", "Visitors(1200, spans=7)")
    assert json.dumps(found) == "1200"


@pytest.mark.parametrize("rotation", ["day", "never"])
def test_ranges_that_are_read_together(article, rule, rotation):
    rule(visitors=True, VISITOR_KEY_ROTATION=rotation)
    other = Article.objects.create(title="Coffee")
    days = [DAY + datetime.timedelta(days=n) for n in range(5)]
    for n, day in enumerate(days):
        visit(article, range(n + 1), at=day)
        visit(other, range(10, 12 + n), at=day)
    keys = {obj: counter_key(obj, counter="views") for obj in (article, other)}
    ranges = {
        (obj, first, last): Number(key, first, last, True)
        for obj, key in keys.items()
        for first, last in [(days[0], days[0]), (days[0], days[3]), (days[2], days[4])]
    }

    found = read_numbers([*ranges.values(), *ranges.values()])
    assert len(found) == 6
    for (obj, first, last), wanted in ranges.items():
        alone = obj.get_visitors(first_day=first, last_day=last)
        assert (found[wanted], found[wanted].spans) == (alone, alone.spans)
    assert read_numbers([]) == {}


def test_no_visitors(article, rule):
    rule(visitors=True)

    assert article.get_visitors(first_day=DAY, last_day=DAY) == 0
    assert article.get_visitors(first_day=DAY, last_day=DAY).spans == 0
    assert get_visitors([]) == {}


def test_counter_without_visitors_is_an_error_with_the_fix(article):
    with pytest.raises(InvalidArgument, match=r"'views' does not count visitors.*True"):
        article.get_visitors(first_day=DAY, last_day=DAY)


def test_invalid_days_are_rejected(article, rule):
    rule(visitors=True)

    with pytest.raises(InvalidArgument, match="2026-03-10 to 2026-03-09"):
        article.get_visitors(first_day=DAY, last_day=DAY - datetime.timedelta(days=1))
    with pytest.raises(InvalidArgument, match="Invalid number of days: 0"):
        Template("{% load hitcount %}{% visitors a days=0 %}").render(Context({"a": article}))


def test_tag_shows_visitors_of_some_days(article, rule):
    rule(visitors=True)
    with time_machine.travel(NOON - datetime.timedelta(days=1)):
        article.record_hit(request_of(1))
    with time_machine.travel(NOON):
        article.record_hit(request_of(1))
        article.record_hit(request_of(2))
        source = "{% load hitcount %}{% visitors a %} {% visitors a days=2 as v %}{{ v }}"

        assert Template(source).render(Context({"a": article})) == "2 3"


def test_queryset_with_visitors(article, rule, django_assert_num_queries):
    rule(visitors=True)
    articles = [article, *(Article.objects.create(title=str(n)) for n in range(9))]
    for n, each in enumerate(articles):
        visit(each, range(n))

    with django_assert_num_queries(2):
        found = [*Article.objects.with_visitors().order_by("pk")]
    assert all(is_about(n, each.visitors) for n, each in enumerate(found))


def test_queryset_leaves_visitors_of_days_to_come_out_in_sql_too(article, rule):
    rule(visitors=True)
    visit(article, [1, 2, 3], at=day_of() + datetime.timedelta(days=1))
    visit(article, [1])
    flush_hits()

    assert article.get_visitors(days=7) == 1
    assert Article.objects.with_visitors(days=7).filter(visitors=1).exists()


def test_queryset_does_not_write_over_a_field(rule):
    rule(visitors=True)

    with pytest.raises(ValueError, match=r"'title' is part of the class app\.Article"):
        Article.objects.with_visitors(name="title")


def test_queryset_with_hits_and_visitors(article, rule):
    rule(visitors=True)
    visit(article, (1, 1, 2))
    (found,) = Article.objects.with_hits().with_visitors(days=7, name="readers")

    assert (found.hits, found.readers) == (3, 2)
    chunks = Article.objects.with_visitors().iterator(chunk_size=1)
    assert [each.visitors for each in chunks] == [2]


def test_deleted_object_takes_its_visitors_along(rule):
    rule("daily", visitors=True)
    for is_flushed in (False, True):
        article = Article.objects.create(pk=4711, title="Tea")
        article.record_hit(request_of(1))
        if is_flushed:
            flush_hits()
        article.delete()
        flush_hits()
        assert not DailyVisitors.objects.exists()
        assert not SeenVisitor.objects.exists()
        assert (
            Article.objects.create(pk=4711, title="new").get_visitors(
                first_day=day_of(), last_day=day_of()
            )
            == 0
        )
        Article.objects.all().delete()


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_async_twins_do_the_same(article, rule):
    rule(visitors=True)
    await article.arecord_hit(request_of(1))

    assert await article.aget_visitors(first_day=day_of(), last_day=day_of()) == 1
    found = await article.aget_visitors(first_day=day_of(), last_day=day_of())
    assert (found, found.spans) == (1, 1)
