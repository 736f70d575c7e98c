"""A hit waits for all open transactions, and is dropped if one of them rolls back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from django.db import connection, transaction
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.recording import record_hit
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])

HERE, ELSEWHERE = "default", "elsewhere"
ORDERS = [(HERE, ELSEWHERE), (ELSEWHERE, HERE)]


class Undo(Exception):
    """An exception by which a view rolls a transaction back."""


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def page():
    return RequestFactory(headers=BROWSER).get("/")


@pytest.fixture
def elsewhere(settings) -> None:
    """The counts are in another database than the objects."""
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]


@contextmanager
def rolled_back(using: str) -> Iterator[None]:
    with suppress(Undo), transaction.atomic(using=using):
        yield
        raise Undo


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("outer", "inner"), ORDERS)
class TestTwoDatabases:
    def test_hit_waits_for_both(self, article, outer, inner):
        with transaction.atomic(using=outer):
            with transaction.atomic(using=inner):
                assert record_hit(article).counted
                assert article.hits == 0
            assert article.hits == 0

        assert article.hits == 1

    def test_inner_one_rolls_back(self, article, outer, inner):
        with transaction.atomic(using=outer), rolled_back(inner):
            record_hit(article)

        assert article.hits == 0

    def test_outer_one_rolls_back(self, article, outer, inner):
        with rolled_back(outer), transaction.atomic(using=inner):
            record_hit(article)

        assert article.hits == 0

    def test_savepoint_of_the_inner_one_rolls_back(self, article, outer, inner):
        with transaction.atomic(using=outer), transaction.atomic(using=inner):
            record_hit(article)
            with rolled_back(inner):
                record_hit(article)
            with rolled_back(outer):
                record_hit(article)

        assert article.hits == 1

    def test_first_to_begin_is_the_first_to_end(self, article, outer, inner):
        first, second = transaction.atomic(using=outer), transaction.atomic(using=inner)
        first.__enter__()
        second.__enter__()
        record_hit(article)
        first.__exit__(None, None, None)
        assert article.hits == 0
        second.__exit__(None, None, None)

        assert article.hits == 1

    def test_page_whose_hit_is_gone_counts_it_anew(self, article, page, outer, inner):
        with transaction.atomic(using=outer):
            with rolled_back(inner):
                record_hit(article, page, once_per_request=True)
            record_hit(article, page, once_per_request=True)
            record_hit(article, page, once_per_request=True)

        assert article.hits == 1


def show(article, page) -> str:
    template = Template("{% load hitcount %}{% hit_count article %}")
    return template.render(Context({"article": article, "request": page}))


class TestRememberedHits:
    def test_rolled_back_savepoint(self, article, page):
        """A view tries something that fails, and the page is shown all the same."""
        with transaction.atomic():
            with rolled_back(HERE):
                record_hit(article, page)
                assert show(article, page) == "1"
            assert [show(article, page), show(article, page)] == ["1", "1"]

        assert [show(article, page), article.hits] == ["1", 1]

    def test_rolled_back_transaction(self, article, page):
        with rolled_back(HERE):
            record_hit(article, page)

        assert [show(article, page), show(article, page), article.hits] == ["1", "1", 1]

    def test_savepoint_made_by_hand_takes_nothing_back(self, article, page):
        """Django does not know who was within it."""
        with transaction.atomic():
            savepoint = connection.savepoint()
            record_hit(article, page)
            connection.savepoint_rollback(savepoint)
            assert show(article, page) == "1"

        assert article.hits == 1

    def test_released_savepoint_and_committed_transaction(self, article, page):
        with transaction.atomic():
            with transaction.atomic():
                record_hit(article, page)
            show(article, page)
        show(article, page)

        assert article.hits == 1

    def test_page_that_is_shown_after_commit_by_who_waits_for_it(self, article, page):
        """The hit is about to be counted, and Django has taken it off its list already."""
        with transaction.atomic():
            transaction.on_commit(lambda: show(article, page))
            record_hit(article, page)
            transaction.on_commit(lambda: show(article, page))

        assert article.hits == 1

    def test_refused_hit_of_a_savepoint_that_is_rolled_back(self, article, page):
        with transaction.atomic():
            with rolled_back(HERE):
                record_hit(article, page, refusals=[lambda context: True])
            show(article, page)

        assert article.hits == 1


@contextmanager
def without_autocommit() -> Iterator[None]:
    transaction.set_autocommit(False)
    try:
        yield
        transaction.commit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


class TestAutocommitOff:
    def test_hit_is_refused(self, article, caplog):
        with without_autocommit():
            hit = record_hit(article)

        assert (hit.counted, hit.refusal, hit.total) == (False, "unavailable", 0)
        assert "Autocommit is off in database 'default'" in caplog.text
        assert article.hits == 0

    def test_hit_in_a_block_that_commits_nothing_is_refused(self, article):
        """Django calls nobody after the COMMIT that the caller sends."""
        with without_autocommit(), transaction.atomic():
            assert record_hit(article).refusal == "unavailable"

        assert article.hits == 0

    def test_hits_count_as_soon_as_it_is_on(self, article, page):
        with without_autocommit():
            record_hit(article)
        assert record_hit(article, page).total == 1

    def test_transaction_goes_on(self, article):
        with without_autocommit():
            article.title = "changed by the view"
            article.save()
            record_hit(article)

        article.refresh_from_db()
        assert article.title == "changed by the view"

    @pytest.mark.usefixtures("elsewhere")
    def test_counts_elsewhere_do_not_wait_for_it(self, article):
        with without_autocommit():
            assert record_hit(article).total == 1
            with transaction.atomic():
                assert record_hit(article).total == 2

        assert article.hits == 2
