"""A row names each deleted object until its counts are deleted, whatever dies meanwhile."""

from __future__ import annotations

import datetime
import signal
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.signals import pre_delete

from django_hitcount import deletion, forget_hits
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db import taking
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DeletedObject, HitSlot
from django_hitcount.exceptions import BufferUnavailable, UnsavedObject
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.maintenance.forgetting import FIRST_PAUSE, KEPT_FOR
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.app.models import Article, Page
from tests.deleted import is_nothing_left, let_pass
from tests.redis_server import names_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer) -> Article:
    """Its hits are in the tables, and one more is in the buffer."""
    article = Article.objects.create(title="Tea")
    record_hits([article], amount=5)
    flush_hits()
    record_hit(article)
    return article


def fail() -> None:
    raise ZeroDivisionError


class TestWhoeverDies:
    STEPS = {
        "after the COMMIT": (deletion, "forget_now"),
        "before the tables": (forgetting, "delete_rows_of"),
        "within the tables": (taking, "take_write_lock"),
        "before it is over": (forgetting, "_finish_or_postpone"),
    }

    @pytest.mark.parametrize("step", STEPS)
    def test_hits_go_though_the_process_dies(self, article, step):
        with mock.patch.object(*self.STEPS[step], side_effect=children.die):
            assert children.run(lambda: (article.delete(), flush_hits())) == -signal.SIGKILL
        assert not Article.objects.filter(pk=article.pk).exists()

        flush_hits()

        assert is_nothing_left()
        article.save(force_insert=True)
        assert get_hits(article) == 0

    def test_totals_go_though_redis_is_away_after_the_tables(self, redis, redis_buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        article.delete()
        away = BufferUnavailable("away")
        with (
            mock.patch.object(type(redis_buffer), "discard_objects", side_effect=away),
            pytest.raises(ExceptionGroup),
        ):
            flush_hits()
        assert redis.keys("*:total:*")

        flush_hits()

        assert not redis.keys("*:total:*")

    def test_compaction_deletes_counts_without_redis(self, redis):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        with mock.patch.object(deletion, "forget_now", side_effect=children.die):
            assert children.run(article.delete) == -signal.SIGKILL

        compact_hits()

        assert is_nothing_left()

    @pytest.mark.parametrize(
        "step", ["before the tables", "within the tables", "before it is over"]
    )
    def test_flush_that_dies_is_made_good_by_the_next(self, article, step):
        with mock.patch.object(deletion, "forget_now"):
            article.delete()
        with mock.patch.object(*self.STEPS[step], side_effect=children.die):
            assert children.run(flush_hits) == -signal.SIGKILL

        flush_hits()

        assert is_nothing_left()

    def test_other_callback_that_raises(self, article):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            transaction.on_commit(fail)
            article.delete()
        assert not Article.objects.exists()

        flush_hits()

        assert is_nothing_left()

    def test_redis_that_is_left_alone(self, redis_buffer):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        with pytest.raises(BufferUnavailable), redis_buffer._breaker.guard():
            raise BufferUnavailable("away")
        article.delete()

        flush_hits()

        assert is_nothing_left()

    def test_locked_tables(self, article):
        error = OperationalError("lock timeout")
        with mock.patch.object(forgetting, "in_transaction", side_effect=error):
            article.delete()
            with pytest.raises(ExceptionGroup):
                flush_hits()
        assert HitSlot.objects.exists()

        flush_hits()

        assert is_nothing_left()


class TestHitsFromAfter:
    @pytest.fixture
    def stale(self, article) -> Article:
        """The deleted article, as a page may still have it."""
        stale = Article.objects.get()
        article.delete()
        flush_hits()
        return stale

    def test_hits_of_a_page_that_still_shows_the_object_go_too(self, stale):
        record_hit(stale)
        let_pass(FIRST_PAUSE)

        flush_hits()

        assert is_nothing_left()

    def test_hits_from_before_the_first_flush_go_too(self, article):
        stale = Article.objects.get()
        article.delete()
        record_hit(stale)
        let_pass(FIRST_PAUSE)
        flush_hits()

        assert is_nothing_left()

    def test_row_goes_when_nothing_came_for_an_hour(self, stale):
        let_pass(KEPT_FOR)
        record_hit(stale)
        flush_hits()
        assert is_nothing_left()
        assert DeletedObject.objects.exists()

        let_pass(2 * KEPT_FOR)
        flush_hits()

        assert not DeletedObject.objects.exists()

    def test_object_is_looked_at_less_and_less_often(self, article):
        article.delete()
        flush_hits()
        looks = 1
        while DeletedObject.objects.exists():
            flush_hits()
            row = DeletedObject.objects.first()
            if row:
                let_pass(row.due_at - datetime.datetime.now(datetime.UTC))
                looks += 1

        assert 8 <= looks <= 12


class TestWhoLives:
    def test_delete_undone_by_a_manual_savepoint_keeps_the_hits(self, article):
        pk = article.pk
        with transaction.atomic():
            savepoint = connection.savepoint()
            article.delete()
            connection.savepoint_rollback(savepoint)

        assert Article.objects.get(pk=pk).hits == 6
        flush_hits()
        assert Article.objects.get(pk=pk).hits == 6
        assert not DeletedObject.objects.exists()

    def test_deleted_again_after_it_was_undone(self, article):
        with transaction.atomic():
            savepoint = connection.savepoint()
            Article.objects.all().delete()
            connection.savepoint_rollback(savepoint)
            Article.objects.all().delete()

        flush_hits()
        assert is_nothing_left()

    def test_delete_refused_by_a_receiver_keeps_the_hits(self, article):
        """All are announced before the first one is refused."""
        kept = [article, Article.objects.create(title="Coffee")]
        record_hits(kept)

        def refuse(instance, **kwargs):
            if instance.title == "Coffee":
                raise ZeroDivisionError

        pre_delete.connect(refuse, sender=Article)
        try:
            with transaction.atomic():
                with pytest.raises(ZeroDivisionError), transaction.atomic():
                    Article.objects.all().delete()
                Article.objects.create(title="Milk").delete()
        finally:
            pre_delete.disconnect(refuse, sender=Article)

        flush_hits()
        assert [obj.hits for obj in kept] == [7, 1]

    @pytest.fixture
    def page(self, buffer) -> Page:
        """A page with five hits, whose key a new page may get."""
        page = Page.objects.create(path="/tea")
        record_hits([page], amount=5)
        return page

    def test_object_created_again_begins_at_zero_and_keeps_its_hits(self, page):
        page.delete()
        if get_buffer().keeps_hits:  # Without Redis, it may be created again at once.
            flush_hits()
        page = Page.objects.create(path="/tea")
        record_hit(page)
        let_pass(FIRST_PAUSE)

        flush_hits()
        flush_hits()

        assert page.hits == 1
        assert not DeletedObject.objects.exists()

    def test_object_created_again_before_hits_are_deleted_begins_when_they_are(self, page):
        """The hits of the two objects cannot be distinguished."""
        with mock.patch.object(deletion, "forget_now"), transaction.atomic():
            page.delete()
            page = Page.objects.create(path="/tea")
        record_hit(page)

        flush_hits()
        record_hit(page)
        let_pass(FIRST_PAUSE)
        flush_hits()

        assert page.hits == 1
        assert not DeletedObject.objects.exists()

    @pytest.mark.usefixtures("buffer")
    def test_one_that_a_manager_hides_lives(self):
        article = Article.objects.create(title="Tea")
        record_hit(article)
        article.delete()
        flush_hits()
        article.save(force_insert=True)
        record_hit(article)
        let_pass(FIRST_PAUSE)

        with mock.patch.object(Article._base_manager, "get_queryset", Article.objects.none):
            flush_hits()

        assert article.hits == 1


class TestForgetByHand:
    def test_objects_that_were_deleted_past_django(self, article):
        Article.objects.all()._raw_delete("default")
        forget_hits(Article(pk=article.pk))

        flush_hits()
        assert is_nothing_left()

    @pytest.mark.parametrize("obj", [None, "text", 5, Article, Article(), [None], [Article()]])
    def test_what_has_no_key(self, db, obj):
        with pytest.raises(UnsavedObject, match=r"Invalid object: .*Pass an object with its prim"):
            forget_hits(obj)
        assert not DeletedObject.objects.exists()

    def test_within_a_transaction_it_waits_for_the_commit(self, article):
        with transaction.atomic():
            Article.objects.all()._raw_delete("default")
            forget_hits([article])
            assert get_hits(article) == 6

        flush_hits()
        assert is_nothing_left()

    def test_object_of_a_model_that_is_gone(self, article):
        DeletedObject.objects.create(
            content_type_id=2**31 - 1, object_id="1", database="default", is_committed=True
        )
        forget_hits(article)

        flush_hits()
        assert is_nothing_left()


@pytest.mark.parametrize("put", ["set", "rpush", "sadd"])
def test_foreign_values_in_redis_do_no_harm(redis, redis_buffer, put, caplog):
    """Their members are not deleted, and no breaker opens."""
    article = Article.objects.create(title="Tea")
    record_hit(article)
    key = counter_key(article, counter="views")
    names = names_of(redis, key)
    redis.set("theirs", "1")
    for place in (names.sketches_of(*key[:2]), names.merged_sketches(day_of()), names.runs):
        redis.delete(place)
        getattr(redis, put)(place, *([b"theirs", b"\xff"] if put == "sadd" else [b"theirs"]))

    article.delete()
    flush_hits()

    assert is_nothing_left()
    assert redis.get("theirs") == b"1"
    assert not get_buffer()._breaker.is_open
