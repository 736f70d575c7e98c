"""The contract of all buffers: what is recorded is what is read, before and after a flush."""

from __future__ import annotations

import datetime
import uuid
from unittest import mock

import pytest
import time_machine
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.test import RequestFactory
from django.utils import timezone

from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import HitSlot
from django_hitcount.exceptions import (
    InvalidAmount,
    InvalidDay,
    InvalidHit,
    InvalidKey,
    UnknownCounter,
    UnsavedObject,
)
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush
from django_hitcount.models import (
    HitCountMixin,
    HitCountQuerySet,
    with_hits,
    with_visitors,
)
from django_hitcount.recording import (
    Hit,
    arecord_hit,
    arecord_hits,
    record_hit,
    record_hits,
    record_page_hit,
)
from django_hitcount.totals import (
    aget_total,
    aget_totals,
    get_total,
    get_totals,
    hits_between,
    total_or_none,
)
from django_hitcount.unique_visitors import (
    get_visitors,
    visitors_between,
    visitors_on,
)
from tests import children
from tests.app.models import Article, Cover, Featured, Page, Photo, Plain, Review, Small
from tests.browsers import BROWSER
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = datetime.date(2026, 3, 1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


def steps():
    """Moments between recording and reading at which no total may differ."""
    yield
    flush()
    yield
    compact()
    yield


def test_each_hit_shows_a_total_with_itself(buffer, article):
    assert [article.record_hit() for _ in range(3)] == [
        Hit(True, None, 1),
        Hit(True, None, 2),
        Hit(True, None, 3),
    ]


def test_total_is_the_same_before_and_after_each_step(buffer, article):
    for _ in range(3):
        record_hit(article)

    assert [get_total(article) for _ in steps()] == [3, 3, 3]
    assert slot_sums([article]) == daily_sums([article]) == {article: 3}


def test_total_goes_on_after_a_flush(buffer, article):
    record_hit(article)
    flush()

    assert record_hit(article).total == 2
    assert article.hits == 2


def test_object_without_hits_has_0(buffer, article):
    assert article.hits == 0
    assert get_totals([article]) == {article: 0}
    assert hits_between(article, TODAY, TODAY) == 0


def test_reading_writes_nothing(buffer, article):
    assert get_total(article) == 0
    assert get_totals([article]) == {article: 0}
    assert not HitSlot.objects.exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Article.objects.create(id=2**62, title="big"),
        lambda: Small.objects.create(),
        lambda: Photo.objects.create(),
        lambda: Photo.objects.create(id=str(uuid.uuid4()).upper()),
        lambda: Page.objects.create(path="/a/ü:%s/日本/"),
        lambda: Page.objects.create(path="x" * 255),
        lambda: Page.objects.create(path="\N{MATHEMATICAL BOLD FRAKTUR CAPITAL A}" * 255),
        lambda: Cover.objects.create(photo=Photo.objects.create()),
        lambda: Plain.objects.create(name="no mixin"),
        lambda: Review.objects.create(title="child"),
    ],
)
def test_any_primary_key_is_counted(buffer, make):
    obj = make()
    record_hit(obj)
    fetched = type(obj).objects.get(pk=obj.pk)

    assert [get_total(fetched) for _ in steps()] == [1, 1, 1]
    assert record_hit(fetched).total == 2


@pytest.mark.parametrize(("one", "other"), [("a", "A"), ("a", "a "), ("a", "ä"), ("1", "01")])
def test_keys_that_look_alike_are_distinguished(buffer, one, other):
    """Some databases would take some of these for equal; here they are different objects."""
    pages = [Page(path=one), Page(path=other)]
    for page in pages:
        page._state.adding = False  # MariaDB would not hold both.
    record_hits(pages, amount=2)
    record_hit(pages[1])

    for _ in steps():
        assert get_totals(pages) == {pages[0]: 2, pages[1]: 3}


def test_proxy_counts_as_its_concrete_model(buffer, article):
    record_hit(Featured.objects.get(pk=article.pk))

    assert article.hits == 1


def test_counters_of_an_object_are_apart(buffer, article):
    record_hit(article)
    record_hit(article, counter="downloads", amount=5)

    for _ in steps():
        assert (get_total(article), get_total(article, counter="downloads")) == (1, 5)


def test_negative_amount_takes_hits_back(buffer, article):
    record_hit(article, counter="downloads", amount=3)
    flush()

    assert record_hit(article, counter="downloads", amount=-1).total == 2
    for _ in steps():
        assert get_total(article, counter="downloads") == 2


def test_hits_that_cancel_out_leave_0(buffer, article):
    record_hit(article, amount=3)
    record_hit(article, amount=-3)

    assert [get_total(article) for _ in steps()] == [0, 0, 0]


def test_totals_beyond_32_bits(buffer, article):
    for _ in range(6):
        record_hit(article, amount=1_000_000_000)

    assert [get_total(article) for _ in steps()] == [6_000_000_000] * 3


def test_many_objects_at_once_in_order(buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(40))
    record_hits(articles[:10])

    totals = [hit.total for hit in record_hits(articles)]

    assert totals == [2] * 10 + [1] * 30
    for _ in steps():
        assert list(get_totals(articles).values()) == totals


def test_no_objects_at_all(buffer):
    assert record_hits([]) == []
    assert get_totals([]) == {}


def test_the_same_object_twice_in_one_call_counts_twice(buffer, article):
    record_hits([article, article])

    assert article.hits == 2


def test_objects_of_different_models_at_once(buffer, article):
    photo = Photo.objects.create()
    record_hits([article, photo])

    assert get_totals([article, photo]) == {article: 1, photo: 1}


def test_a_day_is_counted_where_the_hit_belongs(buffer, article):
    record_hit(article, at=TODAY, amount=2)
    record_hit(article, at=TODAY - datetime.timedelta(days=1), amount=3)
    record_hit(article, at=TODAY - datetime.timedelta(days=400), amount=5)

    for _ in steps():
        assert article.hits == 10
        assert article.hits_between(TODAY, TODAY) == 2
        assert article.hits_between(TODAY - datetime.timedelta(days=6), TODAY) == 5
        assert article.hits_between(datetime.date(2020, 1, 1), TODAY) == 10
        assert article.hits_between(TODAY, TODAY, counter="downloads") == 0


@pytest.mark.parametrize(
    ("at", "day"),
    [
        # Berlin: one hour ahead of UTC in winter, two in summer.
        ("2026-01-31T22:59:59+00:00", "2026-01-31"),
        ("2026-01-31T23:00:00+00:00", "2026-02-01"),
        ("2026-06-30T21:59:59+00:00", "2026-06-30"),
        ("2026-06-30T22:00:00+00:00", "2026-07-01"),
        # The nights when the clocks change.
        ("2026-03-28T23:00:00+00:00", "2026-03-29"),
        ("2026-10-25T22:59:59+00:00", "2026-10-25"),
    ],
)
@pytest.mark.parametrize("activated", ["Europe/Berlin", "Pacific/Auckland", "America/Los_Angeles"])
def test_day_is_that_of_the_site_not_of_the_visitor(at, day, activated):
    at = datetime.datetime.fromisoformat(at)

    with timezone.override(activated), time_machine.travel(at, tick=False):
        assert day_of().isoformat() == day
        assert day_of(at).isoformat() == day
        assert day_of(at.astimezone(datetime.UTC)).isoformat() == day


def test_day_without_time_zone_support(settings):
    settings.USE_TZ = False

    assert day_of(datetime.datetime(2026, 1, 31, 23, 59)).isoformat() == "2026-01-31"
    with time_machine.travel("2026-01-31T23:30:00+00:00", tick=False):
        assert day_of().isoformat() == "2026-02-01"


def test_hits_around_midnight_fall_on_their_days(buffer, article):
    with time_machine.travel("2026-01-31T22:59:59.999+00:00", tick=False):
        record_hit(article)
    with time_machine.travel("2026-01-31T23:00:00+00:00", tick=False):
        record_hit(article)

    for _ in steps():
        january = article.hits_between(datetime.date(2026, 1, 1), datetime.date(2026, 1, 31))
        assert (january, article.hits) == (1, 2)


class TestTransactions:
    def test_rolled_back_hit_is_not_counted(self, buffer, article):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert record_hit(article) == Hit(True, None, 1)
            raise ZeroDivisionError

        assert article.hits == 0

    def test_hit_counts_after_the_commit(self, buffer, article):
        record_hit(article)
        with transaction.atomic():
            assert record_hit(article).total == 2
            assert get_total(article) == 1

        assert article.hits == 2

    def test_rolled_back_savepoint_is_not_counted(self, buffer, article):
        with transaction.atomic():
            record_hit(article)
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                record_hit(article)
                raise ZeroDivisionError

        assert article.hits == 1

    def test_error_after_the_commit_does_not_reach_the_page(self, buffer, article, caplog):
        """Even if that is a mistake in the package."""
        with (
            mock.patch.object(type(buffer), "record", side_effect=ZeroDivisionError),
            transaction.atomic(),
        ):
            record_hit(article)

        assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]

    def test_total_read_in_a_transaction_is_not_kept(self, redis_buffer, article):
        """It may be what the tables were when the transaction began."""
        with transaction.atomic():
            assert get_total(article) == 0

        assert not redis_buffer.read_state([]).totals
        assert not redis_keys("hitcount:*:total:*")


def redis_keys(pattern):
    from django_redis import get_redis_connection

    return get_redis_connection("hitcount").keys(pattern)


class TestRequests:
    @pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "OPTIONS"])
    def test_only_get_counts(self, buffer, article, method):
        record_hit(article)
        request = RequestFactory(headers=BROWSER).generic(method, "/")

        assert record_hit(article, request) == Hit(False, "method", 1)
        assert article.hits == 1

    def test_page_counts_once_per_request_and_object(self, buffer, article):
        request = RequestFactory(headers=BROWSER).get("/")
        other = Article.objects.create(title="Coffee")

        totals = [record_page_hit(request, obj).total for obj in (article, article, other)]

        assert totals == [1, 1, 1]
        assert get_totals([article, other]) == {article: 1, other: 1}

    def test_page_hit_after_an_explicit_one_counts_nothing_more(self, buffer, article):
        request = RequestFactory(headers=BROWSER).get("/")
        record_hit(article, request)

        assert record_page_hit(request, article).total == 1
        assert article.hits == 1

    def test_counters_of_one_page_are_apart(self, buffer, article):
        request = RequestFactory(headers=BROWSER).get("/")
        record_page_hit(request, article)
        record_page_hit(request, article, counter="downloads")

        assert get_total(article, counter="downloads") == article.hits == 1


class TestBadInput:
    """Each error names the value and the fix, and nothing is counted."""

    @pytest.mark.parametrize(
        ("function", "arguments"),
        [
            (record_hit, [None, None]),
            (record_hits, [[], None]),
            (record_page_hit, [None, None]),
            (get_total, [None]),
            (get_totals, [[]]),
            (total_or_none, [None]),
            (hits_between, [None, TODAY, TODAY]),
            (visitors_on, [None, TODAY]),
            (visitors_between, [None, TODAY, TODAY]),
            (get_visitors, [[], TODAY, TODAY]),
            (with_hits, [None]),
            (with_visitors, [None]),
            (HitCountQuerySet.with_hits, [None]),
            (HitCountQuerySet.with_visitors, [None]),
            (HitCountMixin.record_hit, [None, None]),
            (HitCountMixin.hits_between, [None, TODAY, TODAY]),
            (HitCountMixin.visitors_on, [None, TODAY]),
            (HitCountMixin.visitors_between, [None, TODAY, TODAY]),
        ],
        ids=lambda value: getattr(value, "__qualname__", ""),
    )
    def test_counter_without_its_name(self, function, arguments):
        with pytest.raises(TypeError, match="positional argument"):
            function(*arguments, "downloads")

    def test_unknown_counter(self, article):
        with pytest.raises(UnknownCounter, match=r"'viewz'.*Declare it.*'viewz': \{\}"):
            record_hit(article, counter="viewz")
        with pytest.raises(UnknownCounter, match="'viewz'"):
            get_total(article, counter="viewz")

    @pytest.mark.parametrize("make", [lambda: Article(), lambda: Photo(), lambda: Article(pk=5)])
    def test_unsaved_object(self, make):
        with pytest.raises(UnsavedObject, match=r"object.*save the object first"):
            record_hit(make())

    @pytest.mark.parametrize("value", [None, "", 5, Article])
    def test_no_object(self, value):
        with pytest.raises(UnsavedObject, match="pass a saved model instance"):
            record_hit(value)

    def test_key_longer_than_the_column(self):
        page = Page.objects.create(path="x" * 256)

        with pytest.raises(InvalidKey, match=r"'xxx.*256 characters.*up to 255"):
            record_hit(page)

    @pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
    def test_key_that_no_column_holds(self, path):
        page = Page(path=path)
        page._state.adding = False

        with pytest.raises(InvalidKey, match="cannot be stored"):
            record_hit(page)

    @pytest.mark.parametrize("amount", [0, 1.0, "1", None, True, 10**9 + 1, -(10**9) - 1])
    def test_amount(self, article, amount):
        with pytest.raises(InvalidAmount, match=f"amount of {amount!r}.*whole number other than 0"):
            record_hit(article, amount=amount)

    def test_day_beyond_the_calendar(self, article):
        with pytest.raises(InvalidDay, match="pass an earlier moment"):
            record_hit(article, at=datetime.datetime(9999, 12, 31, 23, 59, tzinfo=datetime.UTC))

    @pytest.mark.parametrize("at", ["2026-01-01", 5, datetime.time(1)])
    def test_day(self, article, at):
        with pytest.raises(InvalidDay, match="pass a date or a datetime"):
            record_hit(article, at=at)

    @pytest.mark.parametrize(
        ("first", "last"),
        [(TODAY, datetime.date(2026, 2, 28)), (datetime.date(1, 1, 1), TODAY), ("a", TODAY)],
    )
    def test_range_of_days(self, article, first, last):
        with pytest.raises(InvalidDay):
            article.hits_between(first, last)

    def test_one_bad_object_counts_none(self, buffer, article):
        with pytest.raises(InvalidHit):
            record_hits([article, Article()])

        assert article.hits == 0


class TestAsync:
    @pytest.fixture(autouse=True)
    async def no_connection_of_the_thread_is_left(self):
        yield
        await sync_to_async(connections.close_all)()

    async def test_twins_do_the_same(self, buffer):
        article = await Article.objects.acreate(title="Tea")

        assert (await arecord_hit(article)).total == 1
        assert [hit.total for hit in await arecord_hits([article])] == [2]
        assert (await article.arecord_hit(amount=3)).total == 5
        assert await aget_total(article) == 5
        assert await aget_totals([article]) == {article: 5}
        today = day_of()
        assert await article.ahits_between(today, today) == 5


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite commits nothing beside a transaction that reads"
)
def test_default_isolation_of_mariadb_does_not_hide_flushed_hits(redis_buffer, article):
    """A transaction that looked before the flush sees old slots; that total must not spread."""
    record_hit(article)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM django_hitcount_hitslot")
        assert children.run(flush) == 0
        get_total(article)

    assert article.hits == 1
