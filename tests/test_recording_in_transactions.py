"""Hits that are recorded in transactions, and totals that are read in them."""

from __future__ import annotations

from contextlib import suppress
from unittest import mock

import pytest
from django.db import connection, transaction
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.counters.numbers import Number
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.page_numbers import page_number
from django_hitcount.reading import get_hits
from django_hitcount.recording import Hit, record_hit
from tests import children
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.sessions import repeatable_read
from tests.visiting import request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


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
            assert get_hits(article) == 1

        assert article.hits == 2

    def test_only_the_total_of_a_page_includes_its_own_hit(self, rule, article):
        """The hit is recorded after the COMMIT."""
        rule("always", visitors=True)
        visit(article, [1])
        context = Context({"article": article, "request": request_of(2)})
        page = Template(
            "{% load hitcount %}{% hit_count article %} {% hits article %} "
            "{% hits article days=7 %} {% visitors article %} {{ article.hits }}"
        )

        with transaction.atomic():
            assert page.render(context) == "2 2 1 1 1"
        assert page.render(Context({"article": article})).split()[1:] == ["2", "2", "2", "2"]

    @pytest.mark.parametrize(
        "options",
        [
            {"repeat": "daily"},
            {"repeat": 60},
            {"per_address": 1},
            {"repeat": "daily", "per_address": None},
        ],
    )
    def test_total_never_includes_a_hit_that_may_be_a_repeat(
        self, buffer, settings, article, options
    ):
        """Only the buffer finds that out, after the COMMIT."""
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
        pages = []
        for visitor in (1, 1, 2):
            with transaction.atomic():
                pages.append(record_hit(article, request_of(visitor)).total)
        with transaction.atomic():
            pages.append(record_hit(article).total)

        assert pages == [0, 1, 1, 3]

    def test_total_never_includes_a_hit_that_is_refused(self, buffer, article):
        record_hit(article)
        with transaction.atomic():
            hit = record_hit(article, request_of(1), refusals=[lambda context: True])

        assert hit == Hit(False, "caller", 1)

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

    def test_total_read_in_a_transaction_is_not_kept(self, redis, redis_buffer, article):
        """It may be what the tables were when the transaction began."""
        with transaction.atomic():
            assert get_hits(article) == 0

        assert not redis_buffer.read([Number(counter_key(article, counter="views"))]).values
        assert not redis.keys("hitcount:*:total:*")


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite commits nothing beside a transaction that reads"
)
def test_default_isolation_of_mariadb_does_not_hide_flushed_hits(redis_buffer, article):
    """A transaction that looked before the flush sees old slots; that total must not spread."""
    record_hit(article)
    with repeatable_read(), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM django_hitcount_hitslot")
        assert children.run(flush_hits) == 0
        get_hits(article)

    assert article.hits == 1


def test_page_that_shows_the_total_that_it_records(redis, redis_buffer, article):
    """Redis does not know the total, and the page was rolled back before it was shown."""
    request = RequestFactory(headers=BROWSER).get("/")
    with suppress(ZeroDivisionError), transaction.atomic():
        record_hit(article, request, once_per_request=True)
        raise ZeroDivisionError
    assert page_number(request, article, counter="views") == 0
    redis.flushall()
    request = RequestFactory(headers=BROWSER).get("/")
    with transaction.atomic():
        assert record_hit(article, request, once_per_request=True) == Hit(True, None, 1)
    assert get_hits(article) == 1
