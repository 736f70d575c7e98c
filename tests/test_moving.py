"""move_hits(): the counts of one object become those of another, exactly."""

from __future__ import annotations

import datetime
from itertools import pairwise
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Sum

from django_hitcount import amove_hits, correct_hits, move_hits, moving, popular
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import (
    Correction,
    DailyModelHits,
    HitSlot,
    MissedRecord,
    SeenVisitor,
)
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument, UnsavedObject
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import Counter as NamedCounter
from django_hitcount.reading import get_hits, get_visitors
from django_hitcount.recording import record_hit
from django_hitcount.series import hits_by_day
from tests.app.models import Article, Featured, Page, Photo, Plain, Recipe, Small
from tests.redis_server import names_of
from tests.tables import daily_sums, slot_sums
from tests.visiting import visit

pytestmark = pytest.mark.django_db(transaction=True)

YESTERDAY = day_of() - datetime.timedelta(days=1)
LONG_AGO = day_of() - datetime.timedelta(days=30)


@pytest.fixture
def pair(buffer) -> tuple[Article, Article]:
    return Article.objects.create(title="old"), Article.objects.create(title="new")


def visitors_of(article: Article, **days: object) -> int:
    """Read by an object that remembers nothing."""
    return get_visitors(Article.objects.get(pk=article.pk), **days)


class TestHits:
    def test_total_and_days_are_those_of_the_other(self, pair):
        old, new = pair
        record_hit(old, amount=3)
        record_hit(old, amount=4, at=LONG_AGO)
        record_hit(new, amount=10, at=LONG_AGO)
        flush_hits()
        record_hit(old, amount=5)
        record_hit(new, amount=20)
        assert (old.hits, new.hits) == (12, 30)

        move_hits(old, to=new)

        assert (get_hits(old), get_hits(new)) == (0, 42)
        assert (old.hits, new.hits) == (0, 42)
        assert get_hits(new, first_day=LONG_AGO, last_day=LONG_AGO) == 14
        assert get_hits(new, days=1) == 28
        assert get_hits(old, days=40) == 0
        assert record_hit(new).total == 43
        assert record_hit(old).total == 1

    def test_all_counters_move(self, pair):
        old, new = pair
        record_hit(old, counter="downloads", amount=2)
        record_hit(new, counter="downloads")

        move_hits(old, to=new)

        assert get_hits(new, counter="downloads") == 3
        assert get_hits(new) == get_hits(old, counter="downloads") == 0

    @pytest.mark.parametrize("compacted", [False, True])
    def test_hits_of_models_stay_right(self, pair, compacted):
        """Those of slot 0 have rows of their own, by model."""
        old, _ = pair
        page = Page.objects.create(path="/a")
        record_hit(old, amount=3)
        record_hit(page, amount=4)
        flush_hits()
        if compacted:
            compact_hits()

        move_hits(old, to=page)
        compact_hits()

        assert [*hits_by_day(Article, days=1).values()] == [0]
        assert [*hits_by_day(Page, days=1).values()] == [7]
        sums = DailyModelHits.objects.values_list("content_type__model").annotate(Sum("hits"))
        assert {model: hits for model, hits in sums if hits} == {"page": 7}

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Small.objects.create(),
            lambda: Photo.objects.create(),
            lambda: Page.objects.create(path="/old/æ:1"),
            lambda: Plain.objects.create(),
        ],
        ids=["int", "uuid", "text", "without the mixin"],
    )
    def test_objects_may_have_keys_of_other_types(self, buffer, make):
        one, article = make(), Article.objects.create()
        for obj in (one, article):
            record_hit(obj, amount=2)

        move_hits(one, to=article)
        record_hit(one)
        assert (get_hits(one), get_hits(article)) == (1, 4)
        move_hits(article, to=one)

        assert (get_hits(one), get_hits(article)) == (5, 0)
        flush_hits()
        assert slot_sums([one, article]) == daily_sums([one, article]) == {one: 5, article: 0}

    def test_second_call_moves_what_came_since(self, pair):
        old, new = pair
        for total in range(1, 5):
            record_hit(old)
            move_hits(old, to=new)
            assert (get_hits(old), get_hits(new)) == (0, total)

    def test_rows_that_a_flush_writes_meanwhile_move_too(self, pair):
        """It has claimed them before the call, and writes them after the first round."""
        old, new = pair
        record_hit(old)
        flush_hits()
        move, late = moving._move_rows, [NewHits(counter_key(old, counter="views"), day_of(), 5)]

        def move_and_flush(*args):
            found = move(*args)
            slots.add_hits([late.pop()] if late else [], slot=7)
            return found

        with mock.patch.object(moving, "_move_rows", move_and_flush):
            move_hits(old, to=new)

        flush_hits()
        assert slot_sums(pair) == {old: 0, new: 6}

    def test_object_without_hits_changes_nothing(self, pair):
        old, new = pair
        record_hit(new)
        move_hits(old, to=new)
        assert (get_hits(old), get_hits(new)) == (0, 1)

    def test_other_objects_keep_theirs(self, pair):
        old, new = pair
        other, page = Article.objects.create(), Page.objects.create(path=str(old.pk))
        for obj in (old, other, page):
            record_hit(obj)

        move_hits(old, to=new)

        assert (get_hits(other), get_hits(page)) == (1, 1)

    def test_rankings_and_columns_follow(self, buffer):
        old, new = Recipe.objects.create(title="a"), Recipe.objects.create(title="b")
        record_hit(old, amount=3)
        flush_hits()
        compact_hits()
        assert [*Recipe.objects.order_by("pk").values_list("views", flat=True)] == [3, 0]

        move_hits(old, to=new)

        assert [*popular(Recipe, 5)] == [new]
        compact_hits()
        assert [*Recipe.objects.order_by("pk").values_list("views", flat=True)] == [0, 3]

    def test_named_counters_move_and_are_listed(self, buffer):
        record_hit(NamedCounter("old"), amount=3)
        move_hits(NamedCounter("old"), to=NamedCounter("new"))
        assert get_hits(NamedCounter("new")) == 3
        assert [*popular(NamedCounter, 5)] == [NamedCounter("new")]
        article = Article.objects.create()
        move_hits(NamedCounter("new"), to=article)
        assert get_hits(article) == 3

    def test_deleted_object_then_leaves_nothing(self, pair):
        old, new = pair
        record_hit(old, amount=3)
        key = ContentType.objects.get_for_model(Article).pk, str(old.pk)
        move_hits(old, to=new)
        old.delete()
        flush_hits()
        compact_hits()
        assert get_hits(new) == 3
        assert not HitSlot.objects.filter(content_type_id=key[0], object_id=key[1]).exists()

    async def test_twin(self, buffer, no_connection_of_the_thread_is_left):
        old, new = [await Article.objects.acreate() for _ in range(2)]
        await old.arecord_hit()
        await amove_hits(old, to=new)
        assert await new.aget_hits() == 1


class TestCorrections:
    def test_history_follows(self, pair, user: User):
        old, new = pair
        record_hit(old, amount=5)
        correct_hits(old, -2, day=day_of(), reason="a test", user=user)

        move_hits(old, to=new)

        correction = Correction.objects.get()
        assert (correction.object_id, correction.amount) == (str(new.pk), -2)
        assert get_hits(new) == 3
        correct_hits(new, -3, day=day_of(), reason="a test", user=user)
        assert get_hits(new) == 0


class TestVisitors:
    @pytest.fixture
    def pair(self, rule) -> tuple[Article, Article]:
        rule("daily", visitors=True)
        return Article.objects.create(title="old"), Article.objects.create(title="new")

    @pytest.mark.parametrize("flushed", [False, True])
    def test_visitors_of_both_are_added_up(self, pair, flushed):
        old, new = pair
        visit(old, [1, 2, 3])
        visit(new, [3, 4])
        if flushed:
            flush_hits()
        assert (visitors_of(old), visitors_of(new)) == (3, 2)

        move_hits(old, to=new)

        assert (visitors_of(old), visitors_of(new)) == (0, 5)
        visit(new, [5])
        assert visitors_of(new) == 6
        flush_hits()
        assert visitors_of(new) == 6
        assert visitors_of(old) == 0

    def test_visitors_of_closed_days_are_added_up(self, pair):
        old, new = pair
        for day in (YESTERDAY, LONG_AGO):
            visit(old, [1, 2], at=day)
            visit(new, [2], at=day)
        flush_hits()
        compact_hits()
        assert visitors_of(new, first_day=LONG_AGO) == 2

        move_hits(old, to=new)

        assert visitors_of(new, first_day=LONG_AGO) == 6
        assert visitors_of(new, first_day=LONG_AGO, last_day=LONG_AGO) == 3
        assert visitors_of(old, first_day=LONG_AGO) == 0
        assert not MissedRecord.objects.exists()

    def test_late_visitors_are_not_doubled(self, pair):
        """Those of the first call came to the same object on the same day."""
        old, new = pair
        visit(old, [1, 2])
        move_hits(old, to=new)
        visit(old, [3])
        assert (visitors_of(old), visitors_of(new)) == (1, 2)
        flush_hits()
        assert (visitors_of(old), visitors_of(new)) == (1, 2)

        move_hits(old, to=new)

        assert (visitors_of(old), visitors_of(new)) == (0, 3)
        flush_hits()
        compact_hits()
        assert (visitors_of(old), visitors_of(new)) == (0, 3)

    def test_visitor_who_comes_again_is_still_one(self, pair):
        old, new = pair
        visit(old, [1, 2])
        move_hits(old, to=new)
        visit(old, [1, 2])
        move_hits(old, to=new)
        assert visitors_of(new) == 2

    def test_visitors_move_on_and_back(self, pair):
        old, new = pair
        third = Article.objects.create(title="third")
        visit(old, [1, 2])
        visit(new, [1])
        visit(third, [1])
        move_hits(old, to=new)
        move_hits(new, to=third)
        assert [visitors_of(article) for article in (old, new, third)] == [0, 0, 4]
        move_hits(third, to=old)
        assert [visitors_of(article) for article in (old, new, third)] == [4, 0, 0]
        flush_hits()
        compact_hits()
        assert [visitors_of(article) for article in (old, new, third)] == [4, 0, 0]

    @pytest.mark.parametrize("day", [day_of(), YESTERDAY, LONG_AGO])
    def test_visitors_who_came_after_others_had_moved_back_move_with_them(self, pair, day):
        old, new = pair
        visit(old, [1, 2], at=day)
        move_hits(old, to=new)
        move_hits(new, to=old)
        visit(old, [3], at=day)
        flush_hits()
        compact_hits()
        assert visitors_of(old, first_day=day, last_day=day) == 3

        move_hits(old, to=new)

        assert visitors_of(new, first_day=day, last_day=day) == 3

    def test_rows_do_not_show_who_came_together(self, pair):
        """Their primary keys stay random."""
        old, new = pair
        visit(old, [1, 2, 3])
        move_hits(old, to=new)
        pks = [*SeenVisitor.objects.order_by("pk").values_list("pk", flat=True)]
        assert all(b - a > 1000 for a, b in pairwise(pks))

    def test_number_says_that_it_may_have_a_visitor_twice(self, pair):
        old, new = pair
        visit(old, [1])
        visit(new, [1])
        assert visitors_of(new).is_distinct
        move_hits(old, to=new)
        assert not visitors_of(new).is_distinct


@pytest.mark.parametrize("rotation", ["month", "never"])
def test_visitor_of_several_days_is_still_one(redis_rule, rotation):
    redis_rule("daily", visitors=True, VISITOR_KEY_ROTATION=rotation)
    old, new = Article.objects.create(), Article.objects.create()
    today = day_of()
    days = [today, YESTERDAY] if YESTERDAY.month == today.month else [today]
    for day in days:
        visit(old, [1, 2], at=day)
        visit(new, [3], at=day)
    assert get_visitors(old, days=2) == 2

    move_hits(old, to=new)

    assert visitors_of(new, days=2) == 3
    flush_hits()
    assert visitors_of(new, days=2) == 3


def test_sketch_that_redis_has_lost_is_merged(redis, redis_rule):
    redis_rule("daily", visitors=True)
    old, new = Article.objects.create(), Article.objects.create()
    visit(old, [1, 2])
    move_hits(old, to=new)
    redis.flushall()
    visit(old, [2, 3])

    move_hits(old, to=new)

    assert visitors_of(new) == 3
    redis.flushall()
    assert visitors_of(new) == 3


@pytest.mark.parametrize("place", ["pending", "batch", "pending of an earlier run"])
def test_sketch_with_visitors_that_wait_for_a_flush_stays(redis, redis_rule, place):
    redis_rule("daily", visitors=True)
    old = Article.objects.create()
    visit(old, [1, 2])
    flush_hits()
    key = counter_key(old, counter="views")
    visit(old, [3])
    names = names_of(redis, key)
    if place == "batch":
        get_buffer().claim(key.partition(16))
    elif place != "pending":
        redis.rename(names.pending, run_keys(key.partition(16), "earlier").pending)
        redis.append(names.runs, " earlier")
    get_buffer().discard_objects([key[:2]], only_flushed=True)
    assert visitors_of(old) == 3
    flush_hits()
    get_buffer().discard_objects([key[:2]], only_flushed=True)
    assert redis.keys("hitcount:*:visitors:*") == redis.keys("hitcount:*:sketches_of:*") == []


def test_sketches_are_added_up_without_redis(redis, redis_rule, settings):
    """Once Redis is no longer in the settings, nothing can merge them."""
    redis_rule("daily", visitors=True)
    old, new = Article.objects.create(), Article.objects.create()
    for visitors in ([1, 2], [3]):
        visit(old, visitors)
        flush_hits()
        settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
        move_hits(old, to=new)
        settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": "hitcount"}
        redis.flushall()

    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    assert visitors_of(new) == 3


class TestErrors:
    def test_the_same_object(self, pair):
        old, _ = pair
        for same in (old, Article.objects.get(pk=old.pk), Featured.objects.get(pk=old.pk)):
            with pytest.raises(InvalidArgument, match="are the same"):
                move_hits(old, to=same)

    def test_unsaved_objects(self, pair):
        old, _ = pair
        for one, other in ((Article(), old), (old, Article())):
            with pytest.raises(UnsavedObject):
                move_hits(one, to=other)

    def test_transaction(self, pair):
        old, new = pair
        record_hit(old)
        with transaction.atomic(), pytest.raises(RuntimeError, match="within another atomic block"):
            move_hits(old, to=new)
        assert (get_hits(old), get_hits(new)) == (1, 0)


def test_nothing_moves_while_redis_is_away(redis_buffer):
    old, new = Article.objects.create(), Article.objects.create()
    record_hit(old, amount=2)
    flush_hits()
    record_hit(old)
    error = BufferUnavailable("away")
    away = mock.patch.object(type(redis_buffer), "claim", side_effect=error)
    with away, pytest.raises(ExceptionGroup):
        move_hits(old, to=new)

    assert (get_hits(old), get_hits(new)) == (3, 0)
    move_hits(old, to=new)
    assert (get_hits(old), get_hits(new)) == (0, 3)
