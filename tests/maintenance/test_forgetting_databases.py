"""Deleted objects and their counts in several databases."""

from __future__ import annotations

import signal
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction

from django_hitcount import deletion
from django_hitcount.buffers import get_buffer
from django_hitcount.db.tables import DeletedObject, HitSlot
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.maintenance.forgetting import FIRST_PAUSE, KEPT_FOR
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.app.models import Article
from tests.deleted import is_nothing_left, let_pass

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])


class TestSeveralDatabases:
    @pytest.fixture
    def article(self, buffer) -> Article:
        article = Article.objects.create(title="Tea")
        record_hits([article], amount=5)
        flush_hits()
        record_hit(article)
        return article

    def test_moved_object_keeps_its_hits(self, article):
        article.save(using="elsewhere")
        article.delete(using="default")
        flush_hits()
        assert get_hits(Article.objects.using("elsewhere").get()) == 6

        let_pass(2 * KEPT_FOR)
        flush_hits()

        assert get_hits(Article.objects.using("elsewhere").get()) == 6
        assert not DeletedObject.objects.exists()

    def test_moved_object_that_is_deleted_there_loses_them(self, article):
        pk = article.pk
        article.save(using="elsewhere")
        article.delete(using="default")
        article.pk = pk
        article.delete(using="elsewhere")

        flush_hits()

        assert is_nothing_left()

    def test_object_read_from_a_replica_that_lags_behind(self, article):
        article.save(using="elsewhere")
        read = Article.objects.using("elsewhere").get()
        read.delete(using="default")
        Article.objects.using("elsewhere").all()._raw_delete("elsewhere")
        let_pass(FIRST_PAUSE)

        flush_hits()

        assert is_nothing_left()

    def test_objects_of_another_database_are_forgotten(self, article):
        article.save(using="elsewhere")
        Article.objects.using("default").all()._raw_delete("default")
        article.delete(using="elsewhere")

        flush_hits()

        assert is_nothing_left()


class TestDatabaseThatDoesNotAnswer:
    """Its objects are left to the next flush, as they may exist there."""

    @pytest.fixture
    def moved(self, buffer) -> Article:
        """One that was saved elsewhere, and then deleted from here."""
        article = Article.objects.create(title="Moved")
        record_hit(article)
        article.save(using="elsewhere")
        with mock.patch.object(deletion, "forget_now"):
            article.delete(using="default")
        return article

    @pytest.fixture
    def away(self, monkeypatch):
        find_by_texts = forgetting.find_by_texts

        def fail_elsewhere(model, texts, *, using):
            if using == "elsewhere":
                raise OperationalError("away")
            return find_by_texts(model, texts, using=using)

        with monkeypatch.context() as patch:
            patch.setattr(forgetting, "find_by_texts", fail_elsewhere)
            patch.setattr(forgetting, "OBJECTS_AT_A_TIME", 1)
            yield patch

    def test_others_are_forgotten(self, moved, away, caplog):
        others = [Article.objects.create(title="Tea") for _ in range(3)]
        record_hits(others)
        ids = [str(article.pk) for article in others]
        with mock.patch.object(deletion, "forget_now"):
            Article.objects.filter(pk__in=ids).delete()

        self.flush_or_compact()

        assert not HitSlot.objects.filter(object_id__in=ids).exists()
        assert HitSlot.objects.count() == 1
        assert DeletedObject.objects.filter(is_forgotten=False).count() == 1
        assert caplog.text.count("does not say whether the objects exist: away") == 1

    def test_it_is_queried_once_in_a_flush(self, moved, away, caplog):
        second = Article.objects.create(title="Moved, too")
        second.save(using="elsewhere")
        with mock.patch.object(deletion, "forget_now"):
            second.delete(using="default")

        self.flush_or_compact()

        assert caplog.text.count("does not say whether the objects exist: away") == 1
        assert DeletedObject.objects.filter(is_forgotten=False).count() == 2

    def test_object_that_lives_there_keeps_its_hits(self, moved, away):
        self.flush_or_compact()
        away.undo()
        self.flush_or_compact()

        assert get_hits(Article.objects.using("elsewhere").get()) == 1

    def test_object_that_is_gone_is_forgotten_when_it_answers(self, moved, away):
        Article.objects.using("elsewhere").all()._raw_delete("elsewhere")
        self.flush_or_compact()
        away.undo()
        self.flush_or_compact()

        assert is_nothing_left()

    def flush_or_compact(self) -> None:
        (flush_hits if get_buffer().keeps_hits else compact_hits)()


class TestCountsInADatabaseOfTheirOwn:
    @pytest.fixture
    def article(self, buffer, settings) -> Article:
        settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
        article = Article.objects.create(title="Tea")
        record_hit(article)
        flush_hits()
        return article

    def is_nothing_left(self) -> bool:
        return not HitSlot.objects.using("elsewhere").exists()

    def test_deleted_object_loses_its_hits(self, article):
        article.delete()

        flush_hits()
        assert self.is_nothing_left()

    @pytest.mark.parametrize("databases", [("default", "elsewhere"), ("elsewhere", "default")])
    def test_transactions_on_both(self, article, databases):
        outer, inner = databases
        with transaction.atomic(using=outer), transaction.atomic(using=inner):
            article.delete()

        flush_hits()
        assert self.is_nothing_left()

    def test_object_that_is_created_again_begins_at_0(self, article):
        pk = article.pk
        article.delete()
        article = Article.objects.create(pk=pk)
        flush_hits()

        assert article.hits == 0
        record_hit(article)
        let_pass(2 * KEPT_FOR)
        flush_hits()
        flush_hits()
        assert article.hits == 1

    def test_forgotten_object_whose_transaction_is_rolled_back_keeps_its_hits(self, article):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Article.objects.filter(pk=article.pk)._raw_delete("default")
            deletion.forget_hits(article)
            raise ZeroDivisionError

        let_pass(2 * KEPT_FOR)
        flush_hits()
        assert article.hits == 1

    def test_process_that_dies_after_the_commit(self, article):
        with mock.patch.object(deletion, "forget_now", side_effect=children.die):
            assert children.run(article.delete) == -signal.SIGKILL

        flush_hits()

        assert self.is_nothing_left()

    def test_rolled_back_delete_keeps_the_hits(self, article):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Article.objects.all().delete()
            raise ZeroDivisionError

        flush_hits()
        let_pass(2 * KEPT_FOR)
        flush_hits()

        assert article.hits == 1
        assert not DeletedObject.objects.using("elsewhere").exists()

    def test_delete_undone_by_a_manual_savepoint_keeps_the_hits(self, article):
        pk = article.pk
        with transaction.atomic():
            # Not transaction.savepoint(), which has another name in Django 6.1.
            savepoint = connection.savepoint()
            article.delete()
            transaction.savepoint_rollback(savepoint)

        flush_hits()
        let_pass(2 * KEPT_FOR)
        flush_hits()

        assert Article.objects.get(pk=pk).hits == 1

    def test_row_that_is_looked_at_before_the_delete_is_committed_stays(self, article):
        with transaction.atomic():
            Article.objects.all().delete()
            assert children.run(flush_hits) == 0
        let_pass(FIRST_PAUSE)

        flush_hits()

        assert self.is_nothing_left()

    def test_delete_works_while_the_counts_are_away(self, article, caplog):
        error = OperationalError("away")
        with mock.patch.object(DeletedObject.objects, "using", side_effect=error):
            article.delete()

        assert not Article.objects.exists()
        assert "may not be forgotten: away" in caplog.text
