"""The contract of all buffers: what is recorded is what is read, before and after a flush."""

from __future__ import annotations

import datetime
import uuid

import pytest
import time_machine

from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import aget_hits, get_hits
from django_hitcount.recording import Hit, arecord_hit, arecord_hits, record_hit, record_hits
from tests.app.models import Article, Cover, Featured, Page, Photo, Plain, Review, Small
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


TODAY = datetime.date(2026, 3, 1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


def steps():
    """Moments between recording and reading at which no total may differ."""
    yield
    flush_hits()
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

    assert [get_hits(article) for _ in steps()] == [3, 3, 3]
    assert slot_sums([article]) == daily_sums([article]) == {article: 3}


def test_total_goes_on_after_a_flush(buffer, article):
    record_hit(article)
    flush_hits()

    assert record_hit(article).total == 2
    assert article.hits == 2


def test_object_without_hits_has_0(buffer, article):
    assert article.hits == 0
    assert get_hits([article]) == {article: 0}
    assert get_hits(article, first_day=TODAY, last_day=TODAY) == 0


def test_reading_writes_nothing(buffer, article):
    assert get_hits(article) == 0
    assert get_hits([article]) == {article: 0}
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

    assert [get_hits(fetched) for _ in steps()] == [1, 1, 1]
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
        assert get_hits(pages) == {pages[0]: 2, pages[1]: 3}


def test_proxy_counts_as_its_concrete_model(buffer, article):
    record_hit(Featured.objects.get(pk=article.pk))

    assert article.hits == 1


def test_counters_of_an_object_are_apart(buffer, article):
    record_hit(article)
    record_hit(article, counter="downloads", amount=5)

    for _ in steps():
        assert (get_hits(article), get_hits(article, counter="downloads")) == (1, 5)


def test_negative_amount_takes_hits_back(buffer, article):
    record_hit(article, counter="downloads", amount=3)
    flush_hits()

    assert record_hit(article, counter="downloads", amount=-1).total == 2
    for _ in steps():
        assert get_hits(article, counter="downloads") == 2


def test_hits_that_cancel_out_leave_0(buffer, article):
    record_hit(article, amount=3)
    record_hit(article, amount=-3)

    assert [get_hits(article) for _ in steps()] == [0, 0, 0]


def test_totals_beyond_32_bits(buffer, article):
    for _ in range(6):
        record_hit(article, amount=1_000_000_000)

    assert [get_hits(article) for _ in steps()] == [6_000_000_000] * 3


def test_many_objects_at_once_in_order(buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(40))
    record_hits(articles[:10])

    totals = [hit.total for hit in record_hits(articles)]

    assert totals == [2] * 10 + [1] * 30
    for _ in steps():
        assert list(get_hits(articles).values()) == totals


def test_no_objects_at_all(buffer):
    assert record_hits([]) == []
    assert get_hits([]) == {}


def test_the_same_object_twice_in_one_call_counts_twice(buffer, article):
    record_hits([article, article])

    assert article.hits == 2


def test_objects_of_different_models_at_once(buffer, article):
    photo = Photo.objects.create()
    record_hits([article, photo])

    assert get_hits([article, photo]) == {article: 1, photo: 1}


def test_a_day_is_counted_where_the_hit_belongs(buffer, article):
    record_hit(article, at=TODAY, amount=2)
    record_hit(article, at=TODAY - datetime.timedelta(days=1), amount=3)
    record_hit(article, at=TODAY - datetime.timedelta(days=400), amount=5)

    for _ in steps():
        assert article.hits == 10
        assert article.get_hits(first_day=TODAY, last_day=TODAY) == 2
        assert article.get_hits(first_day=TODAY - datetime.timedelta(days=6), last_day=TODAY) == 5
        assert article.get_hits(first_day=datetime.date(2020, 1, 1), last_day=TODAY) == 10
        assert article.get_hits(first_day=TODAY, last_day=TODAY, counter="downloads") == 0


def test_hits_around_midnight_fall_on_their_days(buffer, article):
    with time_machine.travel("2026-01-31T22:59:59.999+00:00", tick=False):
        record_hit(article)
    with time_machine.travel("2026-01-31T23:00:00+00:00", tick=False):
        record_hit(article)

    for _ in steps():
        january = article.get_hits(
            first_day=datetime.date(2026, 1, 1), last_day=datetime.date(2026, 1, 31)
        )
        assert (january, article.hits) == (1, 2)


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
class TestAsync:
    async def test_twins_do_the_same(self, buffer):
        article = await Article.objects.acreate(title="Tea")

        assert (await arecord_hit(article)).total == 1
        assert [hit.total for hit in await arecord_hits([article])] == [2]
        assert (await article.arecord_hit(amount=3)).total == 5
        assert await aget_hits(article) == 5
        assert await aget_hits([article]) == {article: 5}
        today = day_of()
        assert await article.aget_hits(first_day=today, last_day=today) == 5
