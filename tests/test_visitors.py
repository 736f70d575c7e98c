"""Who counts again, and how many different visitors there were."""

from __future__ import annotations

import datetime
import io
import itertools
import json
import pickle

import pytest
import time_machine
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections, transaction
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import salts
from django_hitcount.exceptions import InvalidDay, VisitorsNotCounted
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush
from django_hitcount.models import DailyVisitors, RefusedHitSlot, SeenVisitor, VisitorSalt
from django_hitcount.outages.breaker import Breaker
from django_hitcount.recording import record_hit, record_hits, record_page_hit
from django_hitcount.refused_hits import RefusedHits, refused_between
from django_hitcount.unique_visitors import Visitors, get_visitors
from django_hitcount.visitors import hashing
from tests.app.models import Article, Page, Photo, Plain, Small
from tests.browsers import BROWSER
from tests.conftest import REDIS_BUFFER
from tests.redis_server import round_trips, sends
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

DAY = datetime.date(2026, 3, 10)
NOON = datetime.datetime(2026, 3, 10, 11, tzinfo=datetime.UTC)


def request_of(visitor: int | str):
    address = visitor if isinstance(visitor, str) else f"203.0.113.{visitor}"
    return RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address)


def is_about(visitors: int, count: int) -> bool:
    """Whether ``count`` is right, but for two visitors who may share a register of a sketch."""
    return visitors - 2 <= count <= visitors


def refused(day=None):
    day = day or day_of()
    flush()
    return {(row.counter, row.refusal): row.hits for row in refused_between(day, day)}


def set_rule(settings, repeat, visitors, more):
    """Set the options of "views", and further settings."""
    options = {"repeat": repeat, "visitors": visitors}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}, **more}
    return get_buffer()


@pytest.fixture
def rule(buffer, settings):
    return lambda repeat="always", *, visitors=False, **more: set_rule(
        settings, repeat, visitors, more
    )


@pytest.fixture
def redis_rule(redis_buffer, settings):
    return lambda repeat="always", *, visitors=False, **more: set_rule(
        settings, repeat, visitors, more
    )


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


class TestRepeat:
    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_visitor_counts_once(self, article, rule, repeat):
        rule(repeat)
        hits = [article.record_hit(request_of(n)) for n in (1, 1, 2, 1, 2)]

        assert [hit.counted for hit in hits] == [True, False, True, False, False]
        assert [hit.refusal for hit in hits] == [None, "repeat", None, "repeat", "repeat"]
        assert [hit.total for hit in hits] == [1, 1, 2, 2, 2]
        assert refused() == {("views", "repeat"): 3}
        assert article.hits == 2

    def test_always_is_the_default(self, article):
        assert [article.record_hit(request_of(1)).total for _ in range(3)] == [1, 2, 3]

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    @pytest.mark.parametrize("make", [Small, Photo, lambda: Page(path="a:b|É"), Article])
    def test_every_type_of_key(self, buffer, rule, make, repeat):
        rule(repeat)
        obj = make()
        obj.save(force_insert=True)

        assert [obj.record_hit(request_of(1)).counted for _ in range(2)] == [True, False]

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_each_object_and_counter_by_itself(self, article, rule, settings, repeat):
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
    def test_many_objects_at_once(self, article, rule, repeat):
        rule(repeat)
        articles = [article, *(Article.objects.create(title=str(n)) for n in range(30))]
        record_hit(article, request_of(1))
        hits = record_hits(articles, request_of(1))

        assert [hit.refusal for hit in hits] == ["repeat"] + [None] * 30
        assert [hit.total for hit in hits] == [1] * 31
        assert refused() == {("views", "repeat"): 1}

    @pytest.mark.parametrize(
        ("seconds_before_midnight", "counts"), [(0.1, False), (59, False), (61, True)]
    )
    def test_hit_overtaken_at_midnight_is_a_repeat(
        self, article, rule, seconds_before_midnight, counts
    ):
        """Its process is behind, by its clock or as it waited."""
        rule(3600)
        midnight = datetime.datetime(2026, 3, 10, 23, tzinfo=datetime.UTC)
        with time_machine.travel(midnight, tick=False):
            assert article.record_hit(request_of(1)).counted
        late = midnight - datetime.timedelta(seconds=seconds_before_midnight)
        with time_machine.travel(late, tick=False):
            assert article.record_hit(request_of(1)).counted is counts

    def test_list_across_midnight_is_judged_by_one_moment(self, buffer, rule, monkeypatch):
        """The clock goes on while a list is marked; the key rotates in between."""
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
        flush()

        assert [article.hits for article in articles] == [3] * 6

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_same_object_twice_at_once(self, article, rule, repeat):
        rule(repeat)
        other = Article.objects.create(title="Milk")
        hits = record_hits([article, other, article, article], request_of(1))

        assert [hit.refusal for hit in hits] == [None, None, "repeat", "repeat"]
        assert (article.hits, other.hits) == (1, 1)

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_hits_that_nobody_made_are_no_repeats(self, article, rule, repeat):
        rule(repeat, VISITOR_IDENTITY=["user"])

        assert [article.record_hit(request_of(1)).counted for _ in range(2)] == [True, True]
        assert [article.record_hit().counted for _ in range(2)] == [True, True]

    def test_taking_back_is_no_repeat(self, article, rule):
        rule("daily")
        article.record_hit(request_of(1))

        assert article.record_hit(request_of(1), amount=-1).total == 0
        assert article.record_hit(request_of(2), amount=-1).total == -1
        assert article.record_hit(request_of(2)).counted

    def test_daily_counts_again_the_next_day_whatever_the_key(self, article, rule):
        for rotation in ("day", "month", "never"):
            rule("daily", VISITOR_KEY_ROTATION=rotation)
            request = request_of({"day": 1, "month": 2, "never": 3}[rotation])
            days = [DAY, DAY, DAY + datetime.timedelta(days=1), DAY]
            counted = [article.record_hit(request, at=day).counted for day in days]

            assert counted == [True, False, True, False]

    def test_daily_turns_at_midnight_of_the_site(self, article, rule):
        rule("daily")
        before_midnight = datetime.datetime(2026, 3, 10, 22, 59, tzinfo=datetime.UTC)
        counted = []
        for minutes in (0, 0, 1, 2):  # The first two on the 10th in Berlin.
            with time_machine.travel(before_midnight + datetime.timedelta(minutes=minutes)):
                counted.append(article.record_hit(request_of(1)).counted)

        assert counted == [True, False, True, False]

    @pytest.mark.parametrize("rotation", ["day", "month"])
    def test_seconds_go_on_while_the_key_rotates(self, article, rule, rotation):
        rule(7200, VISITOR_KEY_ROTATION=rotation)
        # Midnight in Berlin is 22:00 in UTC; the month ends there, too.
        with time_machine.travel(datetime.datetime(2026, 4, 30, 21, 50, tzinfo=datetime.UTC)):
            assert article.record_hit(request_of(1)).counted
        with time_machine.travel(datetime.datetime(2026, 4, 30, 22, 10, tzinfo=datetime.UTC)):
            assert article.record_hit(request_of(1)).refusal == "repeat"
            assert article.record_hit(request_of(2)).counted

    def test_in_a_transaction_it_is_judged_at_commit(self, article, rule):
        rule("daily")
        for _ in range(2):
            with transaction.atomic():
                assert article.record_hit(request_of(1)).counted

        assert article.hits == 1
        assert refused() == {("views", "repeat"): 1}

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_rollback_is_not_remembered(self, article, rule, repeat):
        rule(repeat)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            article.record_hit(request_of(1))
            raise ZeroDivisionError

        assert article.record_hit(request_of(1)).counted

    @pytest.mark.parametrize("repeat", [3600, "daily"])
    def test_page_shows_what_was_counted(self, article, rule, repeat):
        rule(repeat)
        template = Template("{% load hitcount %}{% hit_count a %} {% hit_count a %}")
        pages = [
            template.render(Context({"a": article, "request": request_of(1)})) for _ in range(2)
        ]

        assert pages == ["1 1", "1 1"]

    def test_refused_for_another_reason_is_not_remembered(self, article, rule):
        rule("daily", visitors=True)
        article.record_hit(request_of(1), refuse=lambda context: True)

        assert article.visitors_on(day_of()) == 0
        assert article.record_hit(request_of(1)).counted
        assert refused() == {("views", "caller"): 1}

    def test_one_round_trip(self, redis, redis_buffer, settings, django_assert_num_queries):
        options = {"repeat": "daily", "visitors": True}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
        record_hits(articles, request_of(1))

        for visitor, counted in [(1, False), (2, True)]:
            with round_trips(redis) as trips, django_assert_num_queries(0):
                assert record_page_hit(request_of(visitor), articles[0]).counted is counted
            assert trips() == 1

    def test_refused_hit_is_one_round_trip(self, redis, redis_buffer, django_assert_num_queries):
        article = Article.objects.create(title="Tea")
        article.record_hit()
        bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"}).get("/")

        with round_trips(redis) as trips, django_assert_num_queries(0):
            hit = article.record_hit(bot)
        assert (trips(), hit.refusal, hit.total) == (1, "bot", 1)


class TestUniqueVisitors:
    def test_counted_once_a_day(self, article, rule):
        rule(visitors=True)
        for n in (1, 1, 2, 3, 1):
            article.record_hit(request_of(n))

        assert (article.hits, article.visitors_on(day_of())) == (5, 3)

    def test_flush_and_compaction_change_nothing(self, article, rule):
        rule(visitors=True)
        days = [DAY + datetime.timedelta(days=n) for n in range(3)]
        for n, day in enumerate(days, start=1):
            for visitor in range(n):
                article.record_hit(request_of(visitor), at=day)
        seen = []
        for step in (lambda: None, flush, compact, flush):
            step()
            seen.append([article.visitors_on(day) for day in days])

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
        self, article, rule, rotation, redis_says, tables_say, is_flushed
    ):
        buffer = rule(visitors=True, VISITOR_KEY_ROTATION=rotation)
        days = [DAY + datetime.timedelta(days=n) for n in range(3)]
        for n, day in enumerate(days, start=1):
            record_hits([article], request_of(99), at=day - datetime.timedelta(days=99))
            for visitor in range(n):
                article.record_hit(request_of(visitor), at=day)
        if is_flushed:
            flush()

        says = redis_says if buffer.keeps_hits else tables_say
        found = article.visitors_between(days[0], days[-1])
        assert (found, found.spans) == (says, says.spans)
        assert found.is_distinct is (says.spans == 1)

    def test_range_is_merged_after_redis_has_forgotten(self, redis, redis_rule):
        redis_rule(visitors=True, VISITOR_KEY_ROTATION="month")
        article = Article.objects.create(title="Tea")
        for n in range(3):
            for visitor in range(50):
                day = DAY + datetime.timedelta(days=n)
                article.record_hit(request_of(visitor + 20 * n), at=day)
        flush()
        redis.flushall()

        found = article.visitors_between(DAY, DAY + datetime.timedelta(days=2))
        assert (is_about(90, found), found.spans) == (True, 1)
        assert is_about(50, article.visitors_on(DAY))

    @pytest.mark.parametrize("key_id", ["", "v1"])
    def test_sketch_of_somebody_else_is_left_out(self, redis, redis_rule, key_id):
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        article.record_hit(request_of(1))
        (name,) = redis.keys("hitcount:*:sketches_of:*")
        (sketch,) = redis.smembers(name)
        *start, _, pk = sketch.split(b":")
        stranger = b":".join([*start, key_id.encode(), pk])
        redis.pfadd(stranger, "x", "y")
        redis.sadd(name, stranger)

        found = article.visitors_between(day_of(), day_of())
        assert found == (3 if key_id == "v1" else 1)

    def test_what_redis_lost_is_not_lost(self, redis, redis_rule):
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        for n in range(10):
            article.record_hit(request_of(n))
        flush()
        redis.flushall()
        for n in range(5, 13):
            article.record_hit(request_of(n))
        flush()

        assert is_about(13, article.visitors_on(day_of()))
        redis.flushall()
        assert is_about(13, article.visitors_on(day_of()))

    def test_left_over_batch_does_not_overwrite_what_the_table_knows(self, redis, redis_rule):
        """A sketch is evicted between the claim of a flusher that died and the next flush."""
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        for n in range(20):
            article.record_hit(request_of(n))
        flush()
        article.record_hit(request_of(100))
        for partition in range(16):
            get_buffer().claim(partition)
        redis.delete(*redis.keys("*:visitors:*"))
        article.record_hit(request_of(101))
        flush()

        assert DailyVisitors.objects.get().count in {20, 21, 22}
        assert article.visitors_on(day_of()) >= 20

    def test_redis_that_went_back_in_time_is_merged(self, redis, redis_rule):
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        for n in range(5):
            article.record_hit(request_of(n))
        (name,) = redis.keys("*:visitors:*")
        old, ttl = redis.dump(name), redis.pttl(name)
        for n in range(5, 20):
            article.record_hit(request_of(n))
        flush()
        redis.restore(name, ttl, old, replace=True)
        article.record_hit(request_of(100))
        flush()

        assert is_about(21, DailyVisitors.objects.get().count)

    def test_full_redis_is_flushed_though_a_sketch_is_to_be_merged(self, redis, redis_rule):
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        article.record_hit(request_of(1))
        flush()
        redis.delete(*redis.keys("*:visitors:*"))
        article.record_hit(request_of(2))
        redis.config_set("maxmemory", 1)
        try:
            flush()
        finally:
            redis.config_set("maxmemory", 0)

        assert DailyVisitors.objects.get().count == 2
        assert not redis.keys("*scratch*")

    def test_what_is_no_sketch_does_not_keep_hits_from_the_tables(self, redis, redis_rule):
        redis_rule(visitors=True)
        article = Article.objects.create(title="Tea")
        article.record_hit(request_of(1))
        redis.set(redis.keys("*:visitors:*")[0], "somebody else's")
        flush()

        assert slot_sums([article]) == {article: 1}

    def test_counter_that_is_gone_leaves_its_visitors_to_the_end_of_the_day(self, redis, settings):
        counters = {"views": {"visitors": True}, "likes": {"visitors": True}}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
        article, other = (Article.objects.create(title=title) for title in ("Tea", "Milk"))
        record_hit(article, request_of(1), counter="likes")
        article.record_hit(request_of(1))
        settings.HITCOUNT = {
            **settings.HITCOUNT,
            "BUFFER": REDIS_BUFFER,
            "COUNTERS": {"views": {"visitors": True}},
        }
        flush()
        other.delete()

        assert article.visitors_on(day_of()) == 1
        assert [*SeenVisitor.objects.values_list("counter", flat=True)] == ["likes"]

    def test_rule_alone_leaves_no_visitors(self, settings):
        set_rule(settings, "daily", visitors=False, more={})
        Article.objects.create(title="Tea").record_hit(request_of(1), at=DAY)
        compact()

        assert not SeenVisitor.objects.exists()
        assert not DailyVisitors.objects.exists()

    @pytest.mark.parametrize(
        ("n", "text"), [(0, "nobody"), (1, "1 visitor"), (2, "2 visitors, many")]
    )
    def test_it_is_a_number_to_templates(self, n, text):
        template = Template(
            "{% if v %}{{ v }} visitor{{ v|pluralize }}{% else %}nobody{% endif %}"
            "{% if v > 1 %}, many{% endif %}"
        )

        assert template.render(Context({"v": Visitors(n, 1)})) == text

    def test_it_is_a_number_that_knows_more(self):
        found = pickle.loads(pickle.dumps(Visitors(1200, 7)))

        assert (found, found.spans, found.is_distinct) == (1200, 7, False)
        assert (str(found), repr(found)) == ("1200", "Visitors(1200, spans=7)")
        assert json.dumps(found) == "1200"

    def test_nobody(self, article, rule):
        rule(visitors=True)

        assert article.visitors_between(DAY, DAY) == 0
        assert article.visitors_between(DAY, DAY).spans == 0
        assert get_visitors([]) == {}

    def test_counter_that_counts_none_says_how_to(self, article):
        with pytest.raises(VisitorsNotCounted, match=r"'views' does not count visitors.*True"):
            article.visitors_on(DAY)

    def test_bad_days(self, article, rule):
        rule(visitors=True)

        with pytest.raises(InvalidDay, match="2026-03-10 to 2026-03-09"):
            article.visitors_between(DAY, DAY - datetime.timedelta(days=1))
        with pytest.raises(InvalidDay, match="0 is no number of days"):
            Template("{% load hitcount %}{% hit_visitors a days=0 %}").render(
                Context({"a": article})
            )

    def test_tag(self, article, rule):
        rule(visitors=True)
        with time_machine.travel(NOON - datetime.timedelta(days=1)):
            article.record_hit(request_of(1))
        with time_machine.travel(NOON):
            article.record_hit(request_of(1))
            article.record_hit(request_of(2))
            source = (
                "{% load hitcount %}{% hit_visitors a %} {% hit_visitors a days=2 as v %}{{ v }}"
            )

            assert Template(source).render(Context({"a": article})) == "2 3"

    def test_queryset(self, article, rule, django_assert_num_queries):
        rule(visitors=True)
        articles = [article, *(Article.objects.create(title=str(n)) for n in range(9))]
        for n, each in enumerate(articles):
            for visitor in range(n):
                each.record_hit(request_of(visitor))

        with django_assert_num_queries(2):
            found = [*Article.objects.with_visitors().order_by("pk")]
        assert all(is_about(n, each.hit_visitors) for n, each in enumerate(found))

    def test_queryset_does_not_write_over_a_field(self, rule):
        rule(visitors=True)

        with pytest.raises(ValueError, match=r"'title' is a field of app\.Article"):
            Article.objects.with_visitors(name="title")

    def test_queryset_with_hits_and_visitors(self, article, rule):
        rule(visitors=True)
        for visitor in (1, 1, 2):
            article.record_hit(request_of(visitor))
        (found,) = Article.objects.with_hits().with_visitors(days=7, name="readers")

        assert (found.hit_total, found.readers) == (3, 2)
        chunks = Article.objects.with_visitors().iterator(chunk_size=1)
        assert [each.hit_visitors for each in chunks] == [2]

    def test_list_of_a_hundred_is_one_round_trip_and_one_query(
        self, redis, redis_buffer, settings, django_assert_num_queries
    ):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(100))
        record_hits(articles, request_of(1))

        get_visitors(articles)
        with sends() as sent, django_assert_num_queries(1):
            assert {*get_visitors(articles).values()} == {1}
        assert sent() == 1

    @pytest.mark.parametrize(("objects", "trips"), [(20, 2), (60, 3)])
    def test_list_of_merged_ranges_costs_one_more_of_each(
        self, redis, redis_rule, django_assert_num_queries, objects, trips
    ):
        """And one round trip more for each hundred sketches."""
        redis_rule(visitors=True, VISITOR_KEY_ROTATION="never")
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(objects))
        days = [DAY - datetime.timedelta(days=n) for n in range(3)]
        for day in days:
            record_hits(articles, request_of(1), at=day)
        record_hits(articles[:1], request_of(2), at=DAY)
        flush()
        redis.flushall()
        record_hits(articles, request_of(1), at=DAY)

        get_visitors(articles, days[-1], days[0])
        with sends() as sent, django_assert_num_queries(2):
            found = get_visitors(articles, days[-1], days[0])
        assert [found[article] for article in articles] == [2] + [1] * (objects - 1)
        assert {visitors.spans for visitors in found.values()} == {1}
        assert sent() == trips

    def test_deleted_object_takes_its_visitors_along(self, rule):
        rule("daily", visitors=True)
        for is_flushed in (False, True):
            article = Article.objects.create(pk=4711, title="Tea")
            article.record_hit(request_of(1))
            if is_flushed:
                flush()
            article.delete()
            flush()
            assert not DailyVisitors.objects.exists()
            assert not SeenVisitor.objects.exists()
            assert Article.objects.create(pk=4711, title="new").visitors_on(day_of()) == 0
            Article.objects.all().delete()

    @pytest.fixture
    async def no_connection_of_the_thread_is_left(self):
        yield
        await sync_to_async(connections.close_all)()

    @pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
    async def test_async(self, article, rule):
        rule(visitors=True)
        await article.arecord_hit(request_of(1))

        assert await article.avisitors_on(day_of()) == 1
        found = await article.avisitors_between(day_of(), day_of())
        assert (found, found.spans) == (1, 1)


class TestSwitchingToRedis:
    def test_visitors_of_today_come_along(self, redis, settings):
        options = {"COUNTERS": {"views": {"repeat": "daily", "visitors": True}}}
        settings.HITCOUNT = {**settings.HITCOUNT, **options}
        article = Article.objects.create(title="Tea")
        for n in range(3):
            article.record_hit(request_of(n))
        settings.HITCOUNT = {
            **settings.HITCOUNT,
            "BUFFER": REDIS_BUFFER,
        }
        flush()

        assert not SeenVisitor.objects.exists()
        assert article.record_hit(request_of(0)).refusal == "repeat"
        assert article.record_hit(request_of(7)).counted
        assert article.visitors_on(day_of()) == 4
        flush()
        assert DailyVisitors.objects.get().count == 4


class TestKeys:
    KEY = CounterKey(5, "a", "views")

    @pytest.fixture(autouse=True)
    def fresh(self):
        hashing._key_on.cache_clear()

    def marks(self, identity="ann", key=KEY, day=DAY):
        return hashing.read_keyring(day, seconds=None).marks(identity, key)

    def test_same_visitor_same_mark(self):
        assert self.marks() == self.marks()
        assert len(self.marks().of_day) == 16

    def test_everything_matters(self, settings):
        found = [
            self.marks(),
            self.marks("bob"),
            self.marks(key=self.KEY._replace(object_id="b")),
            self.marks(key=self.KEY._replace(counter="downloads")),
            self.marks(key=self.KEY._replace(content_type_id=6)),
            self.marks(day=DAY + datetime.timedelta(days=1)),
        ]
        settings.SECRET_KEY = "another"
        found.append(self.marks())

        assert len({visitor.of_day for visitor in found}) == 7
        assert len({visitor.key_id for visitor in found}) == 3

    @pytest.mark.parametrize(
        ("rotation", "later", "is_same"),
        [("day", 1, False), ("month", 1, True), ("month", 22, False), ("never", 400, True)],
    )
    def test_rotation(self, settings, rotation, later, is_same):
        settings.HITCOUNT = {"VISITOR_KEY_ROTATION": rotation}
        after = self.marks(day=DAY + datetime.timedelta(days=later))

        assert (self.marks() == after) is is_same

    def test_other_processes_find_the_same_key(self):
        before = self.marks()
        hashing._key_on.cache_clear()

        assert self.marks() == before
        assert VisitorSalt.objects.count() == 1

    def test_old_keys_cannot_be_made_again(self, buffer):
        with time_machine.travel(NOON):
            before = self.marks()
            assert VisitorSalt.objects.count() == 1
        with time_machine.travel(NOON + datetime.timedelta(days=2)):
            compact()
            assert VisitorSalt.objects.count() == 1  # Late hits, and intervals across midnight.
        with time_machine.travel(NOON + datetime.timedelta(days=3, minutes=1)):
            compact()
            assert not VisitorSalt.objects.exists()
        hashing._key_on.cache_clear()

        assert self.marks() != before

    def test_key_of_never_is_kept(self, settings, buffer):
        settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_KEY_ROTATION": "never"}
        with time_machine.travel(NOON):
            before = self.marks()
        with time_machine.travel(NOON + datetime.timedelta(days=4000)):
            compact()
        hashing._key_on.cache_clear()

        assert self.marks() == before

    def test_no_key_is_in_redis(self, redis, redis_buffer, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        Article.objects.create(title="Tea").record_hit(request_of(1))
        salt = bytes(VisitorSalt.objects.get().salt)
        secret = hashing.visitor_key(day_of()).secret
        dump = b"".join(redis.dump(key) + key for key in redis.keys("*"))

        assert not [s for s in (salt, secret) if s in dump or s.hex().encode() in dump]

    def test_without_the_salt_nobody_is_told_from_others(self, article, rule, monkeypatch, caplog):
        rule("daily", visitors=True)

        def fail(size):
            raise OperationalError("away")

        monkeypatch.setattr(salts.secrets, "token_bytes", fail)
        monkeypatch.setattr(hashing, "_breaker", Breaker("the salts"))

        assert [article.record_hit(request_of(1)).counted for _ in range(2)] == [True, True]
        assert caplog.text.count("Visitors are not told from each other") == 2


class TestRefusedHits:
    def test_by_day_counter_and_reason(self, article, rule):
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

    def test_taking_back_is_refused_without_a_count(self, article, rule):
        bot = RequestFactory(headers={"user-agent": "Googlebot/2.1"}).get("/")
        for amount in (2, -5):
            assert article.record_hit(bot, amount=amount).refusal == "bot"

        assert refused() == {("views", "bot"): 2}
        assert article.hits == 0

    def test_command(self, article, rule):
        with time_machine.travel(NOON):
            article.record_hit(RequestFactory().get("/"))
            flush()
            out = io.StringIO()
            call_command("refused_hits", stdout=out)

            line = out.getvalue()
            assert "2026-03-10  views         bot" in line
            assert line.endswith("1  The user agent is that of a bot, or empty.\n")

    def test_command_without_refused_hits(self, buffer):
        out = io.StringIO()
        call_command("refused_hits", days=3, stdout=out)

        assert out.getvalue() == "No hits were refused in the last 3 days.\n"
        with pytest.raises(CommandError, match="0 is no number of days"):
            call_command("refused_hits", days=0)


def test_one_visitor_looks_like_two_on_two_objects(settings):
    """Rows of one visitor have nothing in common, so that nobody can be followed."""
    set_rule(settings, "daily", visitors=True, more={})
    record_hits([Article.objects.create(title=title) for title in ("Tea", "Milk")], request_of(1))

    assert len({*SeenVisitor.objects.values_list("visitor", flat=True)}) == 2
