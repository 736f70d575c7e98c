"""When a partition fails, only its objects are left to the next flush."""

from __future__ import annotations

from unittest import mock

import pytest
from django.db.models import Model

from django_hitcount import deletion
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DeletedObject
from django_hitcount.maintenance import flushing, forgetting
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.maintenance.forgetting import FIRST_PAUSE
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article, Page
from tests.deleted import is_nothing_left, let_pass

pytestmark = pytest.mark.django_db(transaction=True)


def partition_of(obj: Model) -> int:
    return counter_key(obj, counter="views").partition(get_config().partitions)


class TestPartitionThatFails:
    """The other partitions go on, and nothing is deleted twice."""

    @pytest.fixture
    def page(self, redis_buffer) -> Page:
        """A new page under the key of a page that was deleted with five hits."""
        page = Page.objects.create(path="/tea")
        record_hits([page], amount=5)
        with mock.patch.object(deletion, "forget_now"):
            page.delete()
        return Page.objects.create(path="/tea")

    def failing(self, monkeypatch, *, is_own: bool) -> None:
        own = partition_of(Page.objects.get())
        flush_partition = flushing.flush_partition

        def fail_in_one(buffer, partition, **options):
            if partition == (own if is_own else (own + 1) % get_config().partitions):
                raise ZeroDivisionError
            return flush_partition(buffer, partition, **options)

        monkeypatch.setattr(flushing, "flush_partition", fail_in_one)

    def test_object_created_again_keeps_what_is_counted_next(self, page, monkeypatch):
        self.failing(monkeypatch, is_own=False)
        shown = []
        for _ in range(4):
            with pytest.raises(ExceptionGroup):
                flush_hits()
            record_hits([page], amount=5)
            shown.append(page.hits)
            let_pass(FIRST_PAUSE)

        assert shown == [5, 10, 15, 20]
        assert not DeletedObject.objects.exists()

    def test_object_in_it_is_left_to_the_next_flush(self, page, monkeypatch):
        with monkeypatch.context() as patch:
            self.failing(patch, is_own=True)
            before = DeletedObject.objects.get()
            with pytest.raises(ExceptionGroup):
                flush_hits()
        row = DeletedObject.objects.get()
        assert not row.is_forgotten
        assert row.due_at > before.due_at
        assert page.hits == 5

        flush_hits()

        assert page.hits == 0
        assert is_nothing_left()

    def test_nothing_is_forgotten_while_the_buffer_does_not_catch_up(self, page):
        with (
            mock.patch.object(get_buffer(), "catch_up", side_effect=ZeroDivisionError),
            pytest.raises(ExceptionGroup),
        ):
            flush_hits()
        assert page.hits == 5

        flush_hits()

        assert is_nothing_left()

    def test_those_that_it_keeps_do_not_keep_others_waiting(self, page, monkeypatch):
        article = Article.objects.create(title="Tea")
        while partition_of(article) == partition_of(page):
            article = Article.objects.create(title="Tea")
        record_hit(article)
        with mock.patch.object(deletion, "forget_now"):
            article.delete()
        monkeypatch.setattr(forgetting, "DUE_PER_FLUSH", 1)
        self.failing(monkeypatch, is_own=True)
        for _ in range(2):
            with pytest.raises(ExceptionGroup):
                flush_hits()

        assert is_nothing_left()
