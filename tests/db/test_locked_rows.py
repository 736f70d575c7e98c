"""Another session has locked rows: their hits go elsewhere, and other hits are not affected."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import Model, QuerySet
from django.test import RequestFactory

from django_hitcount.buffers import database, get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db import slots, transactions
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.daily_visitors import fold_closed_days
from django_hitcount.db.tables import DailyHitSlot, HitSlot, RefusedHitSlot, SeenVisitor
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import Hit, record_hit, record_hits
from django_hitcount.status import get_refused_hits
from tests import children
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.cache_alias import NOWHERE, change_alias
from tests.tables import daily_sums, slot_sums
from tests.waits import waits_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows"),
]

A_MOMENT_SECONDS = 5.0
"""Longer than the first try waits, even on a busy machine, and shorter than the shortest timeout of
a server: 50 seconds on MariaDB."""


@contextmanager
def locked(rows: QuerySet) -> Iterator[None]:
    """Another session has locked ``rows``, and does not say for how long."""
    pks = [*rows.values_list("pk", flat=True)]
    assert pks
    table = rows.model._meta.db_table
    with another_session() as cursor:
        for pk in pks:  # One by one: or else MariaDB locks all rows of a table this small.
            cursor.execute(f"SELECT * FROM {table} WHERE id = %s FOR UPDATE", [pk])
        yield


@contextmanager
def locked_table(model: type[HitSlot]) -> Iterator[None]:
    lock = {"postgresql": "LOCK TABLE {}", "mysql": "LOCK TABLES {} WRITE"}[connection.vendor]
    with another_session() as cursor:
        cursor.execute(lock.format(model._meta.db_table))
        yield
        cursor.execute({"postgresql": "SELECT 1", "mysql": "UNLOCK TABLES"}[connection.vendor])


@contextmanager
def another_session():
    other = connection.copy()
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            yield cursor
        other.rollback()
    finally:
        other.close()


@pytest.fixture(params=["database", "redis away", "mysql"])
def hits_in_slots(request: pytest.FixtureRequest, redis, settings, monkeypatch) -> None:
    """Hits go straight into two slots: without Redis, and while it is away."""
    alias = None
    if request.param == "redis away":
        change_alias(settings, LOCATION=NOWHERE)
        alias = "hitcount"
    if request.param == "mysql":
        if connection.vendor != "mysql":
            pytest.skip("MariaDB stands for MySQL")
        monkeypatch.setattr(transactions, "is_mysql", lambda connection: True)
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": alias, "SLOTS": 2}


@pytest.fixture
def article(hits_in_slots) -> Article:
    return with_slots(Article.objects.create(title="Tea"))


@pytest.fixture
def others(hits_in_slots) -> list[Article]:
    return [with_slots(Article.objects.create(title=title)) for title in ("Cake", "Jam")]


def with_slots(article: Article) -> Article:
    """An article that has a hit in each of its slots."""
    for slot in (1, 2):
        with tries_slots(slot):
            assert record_hit(article).counted
    return article


@contextmanager
def tries_slots(*numbers: int) -> Iterator[list[int]]:
    """Each writer tries these slots, one after the other. Yields those that were tried."""
    tried: list[int] = []

    def choose() -> Iterator[int]:
        for number in cycle(numbers):
            tried.append(number)
            yield number

    with mock.patch.object(slots, "choose_slots", choose):
        yield tried


def of(article: Article, model: type[HitSlot] = HitSlot) -> QuerySet:
    """Name the whole key: MariaDB also locks rows that it only looks at."""
    model_of_article = ContentType.objects.get_for_model(Article)
    key: dict[str, object] = {
        "content_type": model_of_article,
        "object_id": str(article.pk),
        "counter": "views",
    }
    if model is DailyHitSlot:
        key["day"] = day_of()
    return model.objects.filter(**key).values_list("hits")


@pytest.mark.parametrize("model", [HitSlot, DailyHitSlot])
def test_hit_on_a_locked_slot_goes_to_the_other(article, model):
    with locked(of(article, model).filter(slot=1)):
        for _ in range(12):
            with waits_for(0, A_MOMENT_SECONDS):
                assert record_hit(article).counted

    assert slot_sums([article]) == daily_sums([article]) == {article: 14}


def test_refused_hit_goes_to_the_other_slot(article):
    bot = RequestFactory(headers={"User-Agent": "Googlebot/2.1"}).get("/")
    for slot in (1, 2):
        with tries_slots(slot):
            assert record_hit(article, bot).refusal == "bot"
    today = DailyHitSlot.objects.values_list("day", flat=True)[0]
    with locked(RefusedHitSlot.objects.filter(slot=1).values_list("hits")):
        for _ in range(12):
            record_hit(article, bot)

    assert [refused.hits for refused in get_refused_hits(first_day=today, last_day=today)] == [14]


def test_locked_counter_loses_its_own_hits_alone(article, others, caplog):
    with locked(of(article)):
        for _ in range(4):
            assert record_hit(article) == Hit(False, "unavailable", 2)
            for other in others:
                assert record_hit(other).counted

    assert record_hit(article).counted
    assert slot_sums([article, *others]) == {article: 3, others[0]: 6, others[1]: 6}
    assert "The database of django_hitcount" not in caplog.text


def test_pages_wait_for_a_locked_counter_once(article, monkeypatch):
    """Not each of them: a process that has waited looks whether rows are free, no longer."""
    monkeypatch.setattr(database, "HURRY_SECONDS", 60)
    with locked(of(article)):
        record_hit(article)
        with tries_slots(1) as tries:
            for _ in range(5):
                record_hit(article)

    assert len(tries) == 5 * database.TRIES_AT_LOCKS


@pytest.mark.usefixtures("hits_are_patient")
def test_hit_waits_for_rows_that_are_locked_for_a_moment(article):
    """As they are while a compaction folds them."""
    with ExitStack() as lock:
        lock.enter_context(locked(of(article)))

        def unlock_after_the_third_try():
            yield from (1, 2, 1)
            lock.close()
            yield 2

        with mock.patch.object(slots, "choose_slots", unlock_after_the_third_try):
            assert record_hit(article).counted

    assert of(article).get(slot=2) == (2,)


@pytest.mark.usefixtures("hits_are_patient")
def test_of_many_hits_only_those_on_locked_rows_are_lost(article, others, caplog):
    with locked(of(article)):
        results = record_hits([others[0], article, others[1]])

    assert results == [Hit(True, None, 3), Hit(False, "unavailable", 2), Hit(True, None, 3)]
    assert slot_sums([article, *others]) == {article: 2, others[0]: 3, others[1]: 3}
    assert "1 hits are not counted" in caplog.text


@pytest.mark.usefixtures("hits_are_patient")
def test_repeats_among_many_hits_are_known_also_if_one_is_lost(settings, article, others):
    counters = {"views": {"repeat": "daily"}}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    request = RequestFactory(headers=BROWSER).get("/")
    assert record_hit(others[0], request).counted

    with locked(of(article)):
        results = record_hits([*others, article], request)

    assert [hit.refusal for hit in results] == ["repeat", None, "unavailable"]
    assert record_hit(article, request).counted
    assert record_hit(others[1], request).refusal == "repeat"


def test_locked_table_keeps_no_page_waiting(article, others):
    record_hit(article)
    with (
        locked_table(HitSlot),
        mock.patch("django_hitcount.numbers.sums.read_sums", return_value=({}, set())),
        waits_for(0, 2 * A_MOMENT_SECONDS),
    ):
        assert {hit.refusal for hit in record_hits([article, *others])} == {"unavailable"}
        assert record_hit(article).refusal == "unavailable"


def test_limit_of_a_hit_ends_with_its_transaction(article):
    setting = {
        "postgresql": "SHOW lock_timeout",
        "mysql": "SELECT @@innodb_lock_wait_timeout, @@lock_wait_timeout, @@max_statement_time",
    }[connection.vendor]

    def limit():
        with connection.cursor() as cursor:
            cursor.execute(setting)
            return cursor.fetchall()

    before = limit()
    record_hit(article)
    with locked(of(article)):
        record_hit(article)

    assert limit() == before


@pytest.mark.skipif(connection.vendor != "postgresql", reason="psycopg's parameters")
def test_parameters_that_the_server_binds(article, others, monkeypatch):
    """Such a statement cannot carry its own limit."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "server_side_binding", True)
    monkeypatch.setattr(connection.features, "uses_server_side_binding", True)
    connection.close()
    try:
        with locked(of(article)):
            assert record_hit(others[0]).counted
            assert record_hit(article).refusal == "unavailable"
    finally:
        connection.close()


class TestFlush:
    @pytest.fixture
    def article(self, redis_buffer, settings) -> Article:
        settings.HITCOUNT = {**settings.HITCOUNT, "SLOTS": 2}
        article = Article.objects.create(title="Tea")
        for slot in (1, 2):
            with tries_slots(slot):
                record_hit(article)
                flush_hits()
        return article

    def test_goes_to_another_slot(self, article):
        first = tries_slots(1, 2)
        record_hit(article)
        with locked(of(article).filter(slot=1)), first:
            assert children.run(flush_hits) == 0

        assert slot_sums([article]) == daily_sums([article]) == {article: 3}


@pytest.mark.usefixtures("hits_are_patient")
class TestCompaction:
    """While it waited for a row, hits would be lost on all the others that it has locked."""

    @pytest.mark.parametrize("model", [HitSlot, DailyHitSlot])
    def test_locked_row_loses_no_hit(self, article, others, model):
        with locked(of(article, model).filter(slot=1)):
            self.record_while_compacting(article, others)

    def test_locked_slot_0_loses_no_hit(self, article, others):
        compact()
        with_slots(article)
        with locked(of(article).filter(slot=0)):
            self.record_while_compacting(article, others)

    def record_while_compacting(self, article, others):
        if transactions.is_mysql(connection):
            pytest.skip("A compaction on MySQL waits as long as its settings say")
        compactor = children.fork(compact)
        before = slot_sums([article, *others])
        for _ in range(12):
            for each in (article, *others):
                assert record_hit(each).counted
        children.kill(compactor)
        assert slot_sums(before) == {each: hits + 12 for each, hits in before.items()}

    @pytest.mark.parametrize("model", [HitSlot, DailyHitSlot])
    def test_locked_row_is_left_to_the_next_one(self, article, others, model):
        with locked(of(article, model).filter(slot=1)):
            assert children.run(compact) == 0
            assert slots_of(article, model) == [0, 1]
            assert slots_of(others[0], model) == [0]

        compact()
        assert slots_of(article) == [0]
        assert slot_sums([article]) == {article: 2}


def slots_of(article: Article, model: type[HitSlot] = HitSlot) -> list[int]:
    return [*of(article, model).order_by("slot").values_list("slot", flat=True)]


def test_buffer_is_not_left_alone_for_a_lock(article):
    with locked(of(article)):
        record_hit(article)

    buffer = get_buffer()
    assert not getattr(buffer, "_slots", buffer)._breaker.is_open


def analyze(model: type[Model]) -> None:
    with connection.cursor() as cursor:
        statement = "ANALYZE TABLE" if connection.vendor == "mysql" else "ANALYZE"
        cursor.execute(f"{statement} {model._meta.db_table}")


@pytest.mark.parametrize("hits_in_slots", ["database"], indirect=True)
@pytest.mark.parametrize("model", [HitSlot, DailyHitSlot])
def test_deletion_does_not_wait_for_rows_of_others(article, others, model):
    """MariaDB would scan a table this small, and wait for each row that it looks at."""
    analyze(model)
    pk = str(others[0].pk)
    with locked(of(article, model)), waits_for(0, A_MOMENT_SECONDS):
        others[0].delete()
        assert not model.objects.filter(object_id=pk).exists()


@pytest.mark.parametrize("hits_in_slots", ["database"], indirect=True)
def test_fold_of_closed_days_does_not_wait_for_rows_of_open_ones(article):
    """The same holds for visitors."""
    key = counter_key(article, counter="views")._asdict()
    today = day_of()
    SeenVisitor.objects.bulk_create(
        SeenVisitor(**key, day=day, visitor_key="key", visitor=str(n))
        for n, day in enumerate([today - datetime.timedelta(days=9)] * 4 + [today])
    )
    analyze(SeenVisitor)
    open_rows = SeenVisitor.objects.filter(day=today)
    with locked(open_rows), waits_for(0, A_MOMENT_SECONDS):
        assert fold_closed_days(piece_size=10) == [4]
    assert SeenVisitor.objects.get() == open_rows.get()
