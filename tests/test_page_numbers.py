"""What a page with several tags costs, and that its numbers are right."""

from __future__ import annotations

import contextvars
import datetime
import uuid
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import time_machine
from django.db import connection, transaction
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext

from django_hitcount import page_numbers
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters import numbers
from django_hitcount.counters.days import last_days
from django_hitcount.counters.numbers import Number, Wish
from django_hitcount.counters.visitors import VisitorsOfDays
from django_hitcount.db import daily_visitors
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyVisitors
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.numbers import read_numbers
from django_hitcount.reading import get_visitors
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.app.models import Article, Page, Photo, Small
from tests.redis_server import sends
from tests.visiting import is_about, request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime.datetime(2026, 3, 10, 11, tzinfo=datetime.UTC)
DAY = NOON.date()

KEYS_OF_ONE_DAY = pytest.mark.parametrize("rotation", ["day"])
"""Under other rotations, closed days are merged, and read for each page: see COST_OF_MERGING."""

COST_OF_MERGING = 2, 1
"""Round trips and queries."""

PAGE = (
    "{% hit_count a %} {% hits a %} {% hits a counter='downloads' %} "
    "{% visitors a %} {% visitors a days=7 %}"
)


def days_ago(days: int) -> datetime.date:
    return DAY - datetime.timedelta(days=days)


def render(obj, source=PAGE, *, visitor=1, request=None):
    request = request or request_of(visitor)
    context = Context({"a": obj, "request": request})
    return Template("{% load hitcount %}" + source).render(context)


@contextmanager
def selects():
    """Collect the queries that read a table."""
    found = []
    with CaptureQueriesContext(connection) as queries:
        yield found
    found += [query["sql"] for query in queries if "SELECT" in query["sql"]]


@pytest.fixture
def noon():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture(params=["day", "month", "never"])
def rotation(request):
    return request.param


@pytest.fixture
def site(redis, noon, settings, rotation):
    """Two counters that count visitors, or only one."""
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "REDIS": "hitcount",
        "COUNTERS": {"views": {"visitors": True}, "downloads": {}},
        "VISITOR_KEY_ROTATION": rotation,
    }


@pytest.fixture
def article(site) -> Article:
    """Seven days of three visitors each, two of whom came the day before, too."""
    article = Article.objects.create(title="Tea")
    for n in range(7, 0, -1):
        visit(article, range(n, n + 3), at=days_ago(n))
    flush_hits()
    return article


def expected(article, days):
    return get_visitors([article], first_day=days_ago(days - 1), last_day=DAY)[article]


def test_page_is_one_round_trip_and_no_sql(article, rotation, django_assert_num_queries):
    render(article)

    trips, queries = (0, 0) if rotation == "day" else COST_OF_MERGING
    with sends() as sent, django_assert_num_queries(queries):
        shown = render(article, visitor=2)

    assert sent() == 1 + trips
    assert shown == f"23 23 0 2 {expected(article, 7)}"


def test_open_days_are_no_sql_under_any_rotation(article, django_assert_num_queries):
    source = "{% hit_count a %} {% visitors a %} {% visitors a days=2 %}"
    render(article, source)

    with sends() as sent, django_assert_num_queries(0):
        shown = render(article, source, visitor=2)

    assert sent() == 1
    assert shown == f"23 2 {expected(article, 2)}"


def test_first_page_of_the_day_shows_the_same(article, rotation):
    assert render(article, "{% visitors a days=7 %}") == str(expected(article, 7))
    week = {"day": 19, "month": 8, "never": 8}[rotation]
    assert render(article) == f"22 22 0 1 {week}"


@pytest.mark.parametrize("step", [lambda: None, flush_hits, compact])
def test_kept_visitors_are_those_that_are_read(article, step):
    for visitor in (1, 100, 100):
        visit(article, [visitor])
        step()
        for days in (1, 2, 3, 7, 8, 30):
            source = f"{{% visitors a days={days} as v %}}{{{{ v }}}}/{{{{ v.spans }}}}"
            found = expected(article, days)
            shown = [render(article, source) for _ in range(2)]
            assert shown == [f"{found}/{found.spans}"] * 2


def test_hits_of_others_are_shown_by_the_next_page(article):
    for n in range(1, 4):
        shown = render(article, visitor=100 + n)
        assert shown.split()[0] == str(21 + n)
        assert shown.split()[3:] == [str(expected(article, days)) for days in (1, 7)]


def test_page_whose_record_is_the_first_of_a_run_includes_it(article, redis):
    """Another page has loaded the script that reads, but none that which records."""
    render(article)
    redis.script_flush()
    render(article, "{% visitors a %}")

    assert render(article, visitor=60).split()[:4] == ["23", "23", "0", "2"]


def test_redis_that_lost_its_memory_does_not_show_fewer(
    article, redis, rotation, django_assert_num_queries
):
    visit(article, range(50, 60))
    shown = render(article)
    flush_hits()
    redis.flushall()

    again = render(article, visitor=1)
    assert again.split()[3:] == shown.split()[3:]
    trips, queries = (0, 0) if rotation == "day" else COST_OF_MERGING
    with sends() as sent, django_assert_num_queries(queries):
        third = render(article, visitor=1)
    assert sent() == 1 + trips
    assert third.split()[3:] == shown.split()[3:]


@pytest.mark.parametrize("lost", ["*:visitors:*", "*:kept_visitors:*", "*"])
def test_key_that_redis_lost_is_made_again(article, redis, lost):
    """By eviction, which may take any key."""
    visit(article, range(50, 60))
    render(article)
    flush_hits()
    redis.delete(*redis.keys(lost) or ["nothing"])
    visit(article, [60])

    for _ in range(2):
        shown = render(article, "{% visitors a %} {% visitors a days=7 %}")
        assert is_about(12, int(shown.split()[0]))
        assert shown.split()[1] == str(expected(article, 7))


def test_sketch_that_was_lost_before_a_flush_is_not_missed_for_ever(
    article, redis, django_assert_num_queries
):
    source = "{% visitors a %} {% visitors a days=2 %}"
    visit(article, range(50, 60))
    shown = render(article, source)
    redis.delete(*redis.keys(f"*:visitors:*:{DAY}:*"))

    again = [render(article, source) for _ in range(3)]
    assert shown != again[0]
    assert {*again} == {f"0 {expected(article, 2)}"}
    with sends() as sent, django_assert_num_queries(0):
        render(article, source)
    assert sent() == 2


def test_late_visitor_of_yesterday_is_counted(article):
    render(article)
    visit(article, [77], at=days_ago(1))

    found = expected(article, 7)
    assert render(article, "{% visitors a days=7 %}") == str(found)


def test_late_visitor_of_a_closed_day_is_counted(article, rotation):
    render(article)
    before = render(article, "{% visitors a days=7 %}")
    visit(article, [77], at=days_ago(5))

    assert int(render(article, "{% visitors a days=7 %}")) == int(before) + 1


def test_next_day_has_its_own_numbers(article, noon):
    render(article)
    noon.shift(datetime.timedelta(days=1))

    assert render(article, "{% visitors a %}") == "0"
    found = get_visitors([article], first_day=days_ago(5), last_day=days_ago(-1))[article]
    assert render(article, "{% visitors a days=7 %}") == str(found)


def test_midnight_is_that_of_the_site(article, noon, redis):
    """In Berlin, it is 23:00 in UTC."""
    noon.move_to(datetime.datetime(2026, 3, 10, 22, 59, tzinfo=datetime.UTC))
    render(article)
    (kept,) = redis.keys("*:kept_visitors:*")
    assert 0 < redis.ttl(kept) <= 61

    noon.move_to(datetime.datetime(2026, 3, 10, 23, 0, tzinfo=datetime.UTC))
    assert render(article, "{% visitors a %}") == "0"


def test_all_that_is_kept_ends_at_midnight(article, redis):
    render(article)

    names = redis.keys("*:kept_visitors:*")
    assert names
    assert all(0 < redis.ttl(name) <= 12 * 3600 + 1 for name in names)


def test_deleted_object_leaves_nothing(article, redis):
    render(article)
    pk = article.pk
    article.delete()
    flush_hits()

    assert redis.keys("*:kept_visitors:*") == []
    again = Article.objects.create(pk=pk, title="New")
    assert render(again, "{% visitors a %} {% visitors a days=30 %}") == "0 0"
    assert render(again) == "1 1 0 1 1"


@KEYS_OF_ONE_DAY
def test_page_in_a_transaction_is_one_round_trip_before_and_one_after(
    article, django_assert_num_queries
):
    render(article)
    with sends() as sent, transaction.atomic():
        shown = render(article, visitor=99)
        assert sent() == 1
    assert sent() == 2
    # The visitor of this page comes with the COMMIT.
    assert shown.split() == ["23", "23", "0", "1", *shown.split()[4:]]
    assert render(article, "{% visitors a %}") == "2"


@KEYS_OF_ONE_DAY
def test_pages_in_transactions_let_redis_keep_their_numbers(article, django_assert_num_queries):
    """With ATOMIC_REQUESTS, all pages are. What they read there cannot be kept."""
    for n in range(2):
        with transaction.atomic():
            render(article, visitor=n)
    week = expected(article, 7)

    with sends() as sent, django_assert_num_queries(2), transaction.atomic():  # BEGIN and COMMIT.
        shown = render(article, visitor=2)
        assert sent() == 1
    assert sent() == 2
    assert shown == f"24 24 0 2 {week}"


@KEYS_OF_ONE_DAY
@pytest.mark.parametrize("source", [PAGE, "{% visitors a %} {% visitors a days=7 %} " + PAGE])
def test_pages_in_transactions_run_no_sql_once_redis_knows_the_object(article, source):
    """As those of a site with ATOMIC_REQUESTS."""
    with transaction.atomic():
        render(article, source)
    with sends() as sent, selects() as queries, transaction.atomic():
        shown = render(article, source, visitor=2)
    assert not queries
    assert sent() == (2 if source == PAGE else 4)
    assert shown.split()[-5:-1] == ["23", "23", "0", "1"]


@KEYS_OF_ONE_DAY
@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_numbers_of_a_transaction_are_kept_after_the_commit(article, is_rolled_back):
    source = "{% hits a counter='downloads' %} {% visitors a days=7 %}"
    with transaction.atomic():
        first = render(article, source)
        transaction.set_rollback(is_rolled_back)

    with selects() as queries, transaction.atomic():
        shown = render(article, source)
    assert bool(queries) == is_rolled_back
    assert shown == first == f"0 {expected(article, 7)}"


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite commits nothing beside a transaction that reads"
)
def test_numbers_kept_after_a_transaction_are_not_those_of_its_beginning(article, redis):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM django_hitcount_dailyvisitors")
        assert children.run(lambda: (visit(article, [1, 2, 3]), flush_hits())) == 0
        redis.delete(*redis.keys("hitcount:*:visitors:*"))
        render(article, "{% visitors a days=7 %}")

    assert render(article, "{% visitors a %}") == "3"


def test_total_of_a_hit_that_was_rolled_back_is_read_again(article):
    request = request_of(1)
    with transaction.atomic():
        assert render(article, "{% hit_count a %} {% hits a %}", request=request) == "22 22"
        transaction.set_rollback(True)

    assert render(article, "{% hits a %}", request=request) == "21"


def test_hit_later_in_the_page_changes_its_numbers(article):
    request = request_of(1)
    assert render(article, request=request).split()[:4] == ["22", "22", "0", "1"]

    record_hit(article, request, amount=5)
    record_hit(article, request, counter="downloads", amount=2)
    record_hit(article, request_of(2))
    record_hit(article, request, amount=-1)
    assert render(article, request=request).split()[:4] == ["27", "27", "2", "2"]


def test_other_object_of_the_page_is_read_by_itself(article):
    other = Article.objects.create(title="Coffee")
    record_hits([other], amount=3)
    request = request_of(1)
    render(article, request=request)

    assert render(other, "{% hits a %}", request=request) == "3"
    assert tuple(page_numbers._wishes_of(Article, "")) == (
        Wish("downloads"),
        Wish("views", 1),
        Wish("views", 7),
    )


def test_pages_of_another_route_have_their_own_wishes(article):
    render(article)
    request = request_of(1)
    request.resolver_match = SimpleNamespace(route="api/<pk>")

    record_hit(article, request)
    remembered = page_numbers.memory_of(request)
    assert not any(number.of_visitors for number in remembered)


def test_wishes_are_not_without_end(article):
    request = request_of(1)
    record_hit(article, request)
    for days in range(1, 40):
        render(article, f"{{% visitors a days={days} %}}", request=request)

    known = page_numbers._wishes_of(Article, "")
    assert [wish.days for wish in known] == [*range(20, 40)]


def test_hits_of_days_are_no_wish(article):
    """A record cannot bring them along: they need the table."""
    request = request_of(1)
    record_hit(article, request)
    render(article, "{% hits a days=3 %}", request=request)

    assert page_numbers._wishes_of(Article, "") == []


def test_numbers_are_forgotten_after_a_while(article, monkeypatch):
    request = request_of(1)
    render(article, request=request)
    record_hits([article], amount=4)
    assert render(article, "{% hits a %}", request=request) == "22"

    later = numbers.monotonic() + numbers.FRESH_SECONDS + 1
    monkeypatch.setattr(numbers, "monotonic", lambda: later)
    assert render(article, "{% hits a %}", request=request) == "26"


def test_settle_between_reading_and_keeping(article, redis, monkeypatch):
    """The number was right when it was read, and is not kept: the table may have changed."""
    redis.flushall()
    before = str(expected(article, 7))
    original = daily_visitors.read_days

    def read_and_flush(*args, **kwargs):
        found = original(*args, **kwargs)
        visit(article, [90])
        contextvars.Context().run(flush_hits)  # Not part of this page.
        return found

    monkeypatch.setattr(daily_visitors, "read_days", read_and_flush)
    assert render(article, "{% visitors a days=7 %}") == before
    assert not redis.keys("*:kept_visitors:*")


def test_sketch_that_begins_between_commit_and_settle(redis, redis_buffer, settings):
    """Redis has lost it, and the reader has not seen it in the table: it is read again."""
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    article = Article.objects.create(title="Tea")
    visit(article, range(1, 6))
    wanted = Number(counter_key(article, counter="views"), *last_days(7), True)
    buffer = get_buffer()
    batch = buffer.claim(wanted.key.partition(get_config().partitions))
    redis.delete(*redis.scan_iter("*}:visitors:*"))
    known = buffer.read([wanted])
    days = last_days(7)
    rows = daily_visitors.read_days([wanted.key], *days, kept_from=days[0])
    flushing.apply(batch)
    visit(article, [9])
    buffer.keep_visitors([wanted], VisitorsOfDays(known.visitors, rows), known)
    buffer.settle(batch)

    assert read_numbers([wanted], on_page=True)[wanted] == 6


def test_first_visitor_between_reading_and_keeping(article, monkeypatch):
    original = daily_visitors.read_days

    def read_and_visit(*args, **kwargs):
        found = original(*args, **kwargs)
        visit(article, [90])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(daily_visitors, "read_days", read_and_visit)
        render(article, "{% visitors a %}")
    assert render(article, "{% visitors a %}") == "1"


def test_flusher_that_comes_late_is_seen(article, redis, settings):
    """It had read a sketch before Redis lost it, and writes it after a page has looked."""
    visit(article, range(20))
    asleep = [batch for p in range(16) if (batch := get_buffer().claim(p))]
    redis.flushall()
    assert render(article, "{% visitors a %}") == "0"
    for batch in asleep:
        flushing.flush_batch(get_buffer(), batch)

    assert is_about(20, DailyVisitors.objects.get(day=DAY).count)
    assert render(article, "{% visitors a %}") == str(expected(article, 1))


@pytest.mark.parametrize(
    ("model", "pk"),
    [(Small, 5), (Article, 2**40), (Photo, uuid.UUID(int=7)), (Page, "2026-03-10:v1: a:{b} ä")],
)
def test_any_primary_key(site, rotation, model, pk, django_assert_num_queries):
    obj = model.objects.create(pk=pk)
    render(obj)

    trips, queries = (0, 0) if rotation == "day" else (1, 1)  # There is nothing to merge.
    with sends() as sent, django_assert_num_queries(queries):
        assert render(obj, visitor=2) == "2 2 0 2 2"
    assert sent() == 1 + trips
