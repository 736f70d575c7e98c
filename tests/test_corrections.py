"""Hits that somebody adds or takes back by hand."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import OperationalError, connection, transaction

from django_hitcount import corrections
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer, keeping
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import Correction, DailyHitSlot, HitSlot, MissedRecord
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument, TooFewHits, UnsavedObject
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article, Page, Photo, Review, Small
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

MODELS = {
    "int": lambda: Small.objects.create(),
    "bigint": lambda: Article.objects.create(title="Tea"),
    "uuid": lambda: Photo.objects.create(),
    "string": lambda: Page.objects.create(path="/a:b/%()\nü"),
    "child": lambda: Review.objects.create(title="Tea"),
}


def yesterday() -> datetime.date:
    return day_of() - datetime.timedelta(days=1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


def correct(obj, amount, user, **options):
    arguments = {"day": yesterday(), "reason": "A bot", "user": user, **options}
    return correct_hits(obj, amount, **arguments)


def hits_of_yesterday(obj) -> int:
    return get_hits(obj, first_day=yesterday(), last_day=yesterday())


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_hits_are_added_and_taken_back_in_total_and_day(buffer, user, make):
    obj = make()
    record_hit(obj, amount=5, at=yesterday())
    flush_hits()
    record_hit(obj, amount=2, at=yesterday())
    assert get_hits(obj) == 7

    correct(obj, 10, user)
    assert (get_hits(obj), hits_of_yesterday(obj)) == (17, 17)

    correct(obj, -17, user)
    assert (get_hits(obj), hits_of_yesterday(obj)) == (0, 0)

    flush_hits()
    compact()
    assert (get_hits(obj), hits_of_yesterday(obj)) == (0, 0)


def test_a_correction_says_who_when_and_why(buffer, user, article):
    made = correct(article, 3, user, reason=" The counter was off. ", counter="downloads")

    (kept,) = Correction.objects.all()
    assert kept == made
    assert (kept.counter, kept.object_id, kept.amount) == ("downloads", str(article.pk), 3)
    assert (kept.day, kept.reason, kept.made_by) == (yesterday(), "The counter was off.", "ann")
    assert get_hits(article, counter="downloads") == 3


def test_a_long_name_is_cut(buffer, article):
    correct(article, 1, User(username="n" * 200))

    assert Correction.objects.get().made_by == "n" * 150


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"amount": 0}, InvalidArgument, "Invalid amount: 0"),
        ({"amount": 1.5}, InvalidArgument, "Invalid amount: 1.5"),
        ({"amount": True}, InvalidArgument, "Invalid amount: True"),
        ({"amount": "3"}, InvalidArgument, "Invalid amount: '3'"),
        ({"amount": 10**9 + 1}, InvalidArgument, "Invalid amount: 1000000001"),
        ({"reason": ""}, InvalidArgument, "Invalid reason: ''"),
        ({"reason": " \n"}, InvalidArgument, "Invalid reason"),
        ({"reason": None}, InvalidArgument, "Invalid reason: None"),
        ({"reason": "x" * 201}, InvalidArgument, "1 to 200 characters"),
        ({"reason": "a\0b"}, InvalidArgument, "without NUL"),
        ({"reason": "a\udcff"}, InvalidArgument, "half surrogate pairs"),
        ({"reason": 5}, InvalidArgument, "Invalid reason: 5"),
        ({"user": "a\0b"}, InvalidArgument, "Invalid user: 'a.x00b' has no name"),
        ({"user": "a\udcff"}, InvalidArgument, "half surrogate pairs"),
        ({"user": AnonymousUser()}, InvalidArgument, "Invalid user"),
        ({"user": User(username=" ")}, InvalidArgument, "Pass a user who has logged in"),
        ({"user": None}, InvalidArgument, "Invalid user: None has no name"),
        ({"user": " "}, InvalidArgument, "Invalid user: ' ' has no name"),
        ({"day": "2026-03-01"}, InvalidArgument, "Invalid day: '2026-03-01'"),
        ({"day": datetime.datetime(2026, 3, 1)}, InvalidArgument, "Pass a date"),
        ({"day": datetime.date(9999, 1, 1)}, InvalidArgument, "9999-01-01 is in the future"),
        ({"counter": "likes"}, InvalidArgument, "Unknown counter 'likes'"),
        ({"obj": Article(title="Draft")}, UnsavedObject, "Save the object first"),
    ],
    ids=lambda value: "",
)
def test_an_invalid_correction_writes_nothing(buffer, user, article, options, error, message):
    arguments = {"obj": article, "amount": 3, "user": user, **options}

    with pytest.raises(error, match=message) as caught:
        correct(arguments.pop("obj"), arguments.pop("amount"), arguments.pop("user"), **arguments)

    assert isinstance(caught.value, InvalidArgument)
    assert not Correction.objects.exists()
    assert not HitSlot.objects.exists()


def test_a_script_gives_its_name(buffer, article):
    correction = correct(article, 3, "import of March", reason="lost log", day=day_of())

    assert correction.made_by == "import of March"
    assert get_hits(article) == 3


def test_a_day_of_the_site_is_not_in_the_future(buffer, user, article, settings):
    settings.TIME_ZONE = "Pacific/Kiritimati"  # Where each day begins first.

    correct(article, 1, user, day=day_of())
    with pytest.raises(InvalidArgument, match="in the future"):
        correct(article, 1, user, day=day_of() + datetime.timedelta(days=1))


def test_no_more_is_taken_back_than_was_counted_on_the_day(buffer, user, article):
    record_hit(article, amount=100)
    record_hit(article, amount=4, at=yesterday())
    flush_hits()
    record_hit(article, amount=2, at=yesterday())

    with pytest.raises(TooFewHits, match="Only 6 hits were counted on") as caught:
        correct(article, -7, user)

    assert caught.value.counted == 6
    assert get_hits(article) == 106
    assert not Correction.objects.exists()
    assert not MissedRecord.objects.exists()
    correct(article, -6, user)
    assert get_hits(article) == 100


def test_a_day_below_zero_has_nothing_to_take_back(buffer, user, article):
    record_hit(article, amount=-3, at=yesterday())

    with pytest.raises(TooFewHits, match="Take back 0 at most"):
        correct(article, -1, user)


def test_hits_of_other_counters_and_objects_cannot_be_taken_back(buffer, user, article):
    record_hit(article, at=yesterday(), counter="downloads")
    record_hit(Article.objects.create(title="Coffee"), at=yesterday())

    with pytest.raises(TooFewHits):
        correct(article, -1, user)


def test_within_a_transaction_it_is_part_of_it(buffer, user, article):
    record_hit(article, amount=5, at=yesterday())
    assert article.hits == 5

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        correct(article, -2, user)
        raise ZeroDivisionError
    assert (article.hits, hits_of_yesterday(article)) == (5, 5)
    assert not Correction.objects.exists()

    with transaction.atomic():
        correct(article, -2, user)
        with pytest.raises(TooFewHits):
            correct(article, -4, user)
    assert (article.hits, hits_of_yesterday(article)) == (3, 3)
    assert not MissedRecord.objects.exists()


def test_a_total_that_the_object_carries_is_read_again(buffer, user, article):
    (listed,) = Article.objects.with_hits()

    correct(listed, 3, user)

    assert listed.hits == 3


def test_no_record_for_redis_stays(redis_buffer, user, article):
    correct(article, 3, user)

    assert not MissedRecord.objects.exists()


def test_without_redis_no_record_is_written(user, article):
    with mock.patch.object(MissedRecord, "save", side_effect=AssertionError):
        correct(article, 3, user)


def test_the_next_flush_discards_the_total_if_redis_does_not_answer(redis_buffer, user, article):
    record_hit(article, amount=5)

    with (
        mock.patch.object(keeping, "pause"),
        mock.patch.object(RedisBuffer, "discard_totals", side_effect=BufferUnavailable),
    ):
        correct(article, 3, user)

    assert article.hits == 5
    flush_hits()
    assert article.hits == 8
    assert not MissedRecord.objects.exists()


def test_the_next_flush_discards_the_total_of_a_process_that_died(redis_buffer, user, article):
    """Redis did not answer when it was to pause the total."""
    record_hit(article, amount=5)
    flush_hits()
    assert article.hits == 5

    def correct_and_die():
        with (
            mock.patch.object(keeping, "pause"),
            mock.patch.object(RedisBuffer, "discard_totals", children.die),
        ):
            correct(article, 3, user)

    connection.close()
    assert children.run(correct_and_die) < 0
    assert get_hits(article) == 5
    flush_hits()
    assert get_hits(article) == 8


def test_a_total_that_is_loaded_during_the_correction_is_not_kept(redis_buffer, user, article):
    """A reader has the old sum, and keeps it after the correction."""
    record_hit(article, amount=5, at=yesterday())
    flush_hits()
    redis_buffer.discard_totals([corrections.counter_key(article, counter="views")])
    keep = RedisBuffer.keep_totals
    once = [lambda: correct(article, -2, user)]

    def keep_late(*args, **kwargs):
        if once:
            once.pop()()
        return keep(*args, **kwargs)

    with mock.patch.object(RedisBuffer, "keep_totals", keep_late):
        assert get_hits(article) == 5  # It was right when it was read.
    assert get_hits(article) == 3


def test_a_flush_between_counting_and_taking_back_changes_nothing(redis_buffer, user, article):
    record_hit(article, amount=5, at=yesterday())
    read = RedisBuffer.read
    once = [flush_hits]

    def read_then_flush(*args, **kwargs):
        known = read(*args, **kwargs)
        if once and not connection.in_atomic_block:
            once.pop()()
        return known

    with mock.patch.object(RedisBuffer, "read", read_then_flush):
        correct(article, -5, user)
        assert article.hits == 0
    flush_hits()
    assert (article.hits, hits_of_yesterday(article)) == (0, 0)


def test_an_error_of_the_database_leaves_nothing(buffer, user, article):
    with (
        mock.patch.object(Correction, "save", side_effect=OperationalError("away")),
        mock.patch.object(corrections, "PATIENCE_SECONDS", 0),
        pytest.raises(OperationalError),
    ):
        correct(article, 3, user)

    assert slot_sums([article]) == daily_sums([article]) == {article: 0}


def test_a_lost_connection_is_tried_again(buffer, user, article):
    save = Correction.save
    errors = [OperationalError("away")]

    def fail_once(*args, **kwargs):
        save(*args, **kwargs)
        if errors:
            raise errors.pop()

    with mock.patch.object(Correction, "save", fail_once):
        correct(article, 3, user)

    assert article.hits == Correction.objects.get().amount == 3


def test_an_error_after_the_commit_does_not_write_it_again(buffer, user, article):
    fail = mock.Mock(side_effect=OperationalError(1213, "Deadlock found"))

    with pytest.raises(OperationalError, match="Deadlock found"):
        correct_hits(
            article,
            5,
            day=day_of(),
            reason="Missed",
            user=user,
            then=lambda correction: transaction.on_commit(fail),
        )

    assert fail.call_count == 1
    assert Correction.objects.count() == 1
    assert get_hits(article) == 5


def test_hits_do_not_wait_for_a_correction(buffer, user, article, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "SLOTS": 1}
    with transaction.atomic():
        correct(article, 3, user)
        slots = {
            slot
            for table in (HitSlot, DailyHitSlot)
            for slot in table.objects.values_list("slot", flat=True)
        }

    assert slots == {32_767}


def test_deleting_the_object_deletes_its_corrections(buffer, user, article):
    other = Article.objects.create(title="Coffee")
    correct(article, 3, user)
    correct(other, 3, user)

    article.delete()
    flush_hits()

    assert [kept.object_id for kept in Correction.objects.all()] == [str(other.pk)]


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_counts_in_another_database(redis_buffer, user, article, settings):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    with transaction.atomic(using="default"):
        correct(article, 3, user)

    assert article.hits == 3
    assert Correction.objects.using("elsewhere").count() == 1


def test_costs(user, article, django_assert_num_queries):
    assert not get_buffer().keeps_hits
    correct(article, 3, user)

    with django_assert_num_queries(3 + 2):  # And BEGIN, COMMIT.
        correct(article, 3, user)
    with django_assert_num_queries(4 + 4):  # And a savepoint.
        correct(article, -3, user)
