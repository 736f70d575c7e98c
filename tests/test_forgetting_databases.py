"""Deleted objects and their counts in several databases."""

from __future__ import annotations

import signal
from unittest import mock

import pytest
from django.db import OperationalError, transaction

from django_hitcount import deletion
from django_hitcount.flushing import flush
from django_hitcount.forgetting import FIRST_PAUSE, KEPT_FOR
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.tables import DeletedObject, HitSlot
from django_hitcount.totals import get_total
from tests import children
from tests.app.models import Article
from tests.deleted import is_nothing_left, let_pass

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])


class TestSeveralDatabases:
    @pytest.fixture
    def article(self, buffer) -> Article:
        article = Article.objects.create(title="Tea")
        record_hits([article], amount=5)
        flush()
        record_hit(article)
        return article

    def test_moved_object_keeps_its_hits(self, article):
        article.save(using="elsewhere")
        article.delete(using="default")
        flush()
        assert get_total(Article.objects.using("elsewhere").get()) == 6

        let_pass(2 * KEPT_FOR)
        flush()

        assert get_total(Article.objects.using("elsewhere").get()) == 6
        assert not DeletedObject.objects.exists()

    def test_moved_object_that_is_deleted_there_loses_them(self, article):
        pk = article.pk
        article.save(using="elsewhere")
        article.delete(using="default")
        article.pk = pk
        article.delete(using="elsewhere")

        flush()

        assert is_nothing_left()

    def test_object_read_from_a_replica_that_lags_behind(self, article):
        article.save(using="elsewhere")
        read = Article.objects.using("elsewhere").get()
        read.delete(using="default")
        Article.objects.using("elsewhere").all()._raw_delete("elsewhere")
        let_pass(FIRST_PAUSE)

        flush()

        assert is_nothing_left()

    def test_objects_of_another_database_are_forgotten(self, article):
        article.save(using="elsewhere")
        Article.objects.using("default").all()._raw_delete("default")
        article.delete(using="elsewhere")

        flush()

        assert is_nothing_left()


class TestCountsInADatabaseOfTheirOwn:
    @pytest.fixture
    def article(self, buffer, settings) -> Article:
        settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
        article = Article.objects.create(title="Tea")
        record_hit(article)
        flush()
        return article

    def is_nothing_left(self) -> bool:
        return not HitSlot.objects.using("elsewhere").exists()

    def test_deleted_object_loses_its_hits(self, article):
        article.delete()

        assert self.is_nothing_left()

    @pytest.mark.parametrize("databases", [("default", "elsewhere"), ("elsewhere", "default")])
    def test_transactions_on_both(self, article, databases):
        outer, inner = databases
        with transaction.atomic(using=outer), transaction.atomic(using=inner):
            article.delete()

        assert self.is_nothing_left()

    def test_process_that_dies_after_the_commit(self, article):
        with mock.patch.object(deletion, "forget_now", side_effect=children.die):
            assert children.run(article.delete) == -signal.SIGKILL

        flush()

        assert self.is_nothing_left()

    def test_rolled_back_delete_keeps_the_hits(self, article):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Article.objects.all().delete()
            raise ZeroDivisionError

        flush()
        let_pass(2 * KEPT_FOR)
        flush()

        assert article.hits == 1
        assert not DeletedObject.objects.using("elsewhere").exists()

    def test_row_that_is_looked_at_before_the_delete_is_committed_stays(self, article):
        with transaction.atomic():
            Article.objects.all().delete()
            assert children.run(flush) == 0

        assert self.is_nothing_left()

    def test_delete_works_while_the_counts_are_away(self, article, caplog):
        error = OperationalError("away")
        with mock.patch.object(DeletedObject.objects, "using", side_effect=error):
            article.delete()

        assert not Article.objects.exists()
        assert "may not be forgotten: away" in caplog.text
