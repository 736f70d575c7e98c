"""Queries within a view's transaction leave it as it was, whatever fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client, RequestFactory

from django_hitcount import visitors
from django_hitcount.exceptions import TransactionLost
from django_hitcount.outages import Breaker
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from django_hitcount.refusals import HitContext, refusal
from tests.app.models import Article, Plain
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)

OWN = f"{__name__}."


def ask_a_missing_table(*args: object) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM there_is_no_such_table")
    return False


def write_and_fail(*args: object) -> bool:
    Plain.objects.create(name="of a refusal")
    transaction.on_commit(lambda: Plain.objects.create(name="after COMMIT"))
    raise ZeroDivisionError


def fail_in_a_transaction_without_savepoint(*args: object) -> bool:
    with transaction.atomic(savepoint=False):
        Plain.objects.create(name="of a refusal")
        return ask_a_missing_table()


def without_error(failure: Callable[[], bool]) -> Callable[..., bool]:
    def hide(*args: object) -> bool:
        with suppress(DatabaseError):
            failure()
        return False

    return hide


FAILURES = {
    "ask_a_missing_table": ask_a_missing_table,
    "write_and_fail": write_and_fail,
    "fail_in_a_transaction_without_savepoint": fail_in_a_transaction_without_savepoint,
    "hide_an_error": without_error(ask_a_missing_table),
    "hide_an_error_that_wants_a_rollback": without_error(fail_in_a_transaction_without_savepoint),
}


def write_and_recover(*args: object) -> bool:
    Plain.objects.create(name="of a refusal")
    with suppress(DatabaseError), transaction.atomic():
        ask_a_missing_table()
    transaction.on_commit(lambda: Plain.objects.create(name="after COMMIT"))
    return False


def identity(request: HttpRequest) -> str | None:
    return str(failure(request)) if failure(request) else None


failure = ask_a_missing_table


@refusal("failing", "Fails within the database.")
def failing(context: HitContext) -> bool:
    return failure(context)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture(params=["refusal", "refusals", "identity"])
def record(request, article, settings):
    """Count a hit, with the failure in one of the places that may ask the database."""
    page = RequestFactory(headers=BROWSER).get("/")
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"repeat": "daily"}}}
    if request.param == "refusal":
        settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": [f"{OWN}failing"]}
    if request.param == "identity":
        settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_IDENTITY": [f"{OWN}identity"]}
    given = [failing.refuses] if request.param == "refusals" else None
    return lambda: record_hit(article, page, refusals=given)


def names() -> set[str]:
    return {*Plain.objects.values_list("name", flat=True)}


@pytest.fixture(params=FAILURES)
def any_failure(request, monkeypatch):
    monkeypatch.setattr("tests.db.test_savepoints.failure", FAILURES[request.param])


def test_failure_leaves_the_transaction_of_the_view(buffer, article, record, any_failure):
    with transaction.atomic():
        Plain.objects.create(name="of the view, before")
        assert record().counted
        Plain.objects.create(name="of the view, after")

    assert names() == {"of the view, before", "of the view, after"}
    assert article.hits == 1


def test_failure_leaves_a_transaction_begun_by_hand(article, record, any_failure):
    transaction.set_autocommit(False)
    try:
        Plain.objects.create(name="of the view, before")
        record()
        Plain.objects.create(name="of the view, after")
        transaction.commit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)

    assert {"of the view, before", "of the view, after"} <= names()


def test_what_is_written_without_failure_is_kept(article, record, monkeypatch):
    monkeypatch.setattr("tests.db.test_savepoints.failure", write_and_recover)
    with transaction.atomic():
        assert record().counted

    assert names() == {"of a refusal", "after COMMIT"}


def test_rolled_back_view_takes_what_was_written_along(article, record, monkeypatch):
    monkeypatch.setattr("tests.db.test_savepoints.failure", write_and_recover)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record()
        raise ZeroDivisionError

    assert names() == set()


def test_transaction_that_is_to_be_rolled_back_stays_so(article, record):
    with transaction.atomic():
        Plain.objects.create(name="of the view")
        transaction.set_rollback(True)
        record()
        assert transaction.get_rollback()

    assert names() == set()


def test_nothing_is_sent_for_who_asks_no_database(article, django_assert_num_queries):
    page = RequestFactory(headers=BROWSER).get("/")
    record_hit(article, page)
    with transaction.atomic(), django_assert_num_queries(3):  # The total, in a savepoint.
        record_hit(article, page)


def test_savepoint_of_who_asks_costs_two_statements(article, settings, django_assert_num_queries):
    settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": []}
    page = RequestFactory(headers=BROWSER).get("/")
    record_hit(article, page)
    with transaction.atomic(), django_assert_num_queries(3 + 3):
        record_hit(article, page, refusals=[lambda context: Plain.objects.exists()])


def test_refusal_that_reads_a_total_keeps_the_transaction(article):
    """Reading has a savepoint of its own, within that of the refusal."""
    page = RequestFactory(headers=BROWSER).get("/")
    with transaction.atomic():
        assert record_hit(article, page, refusals=[lambda context: get_hits(article) > 0]).counted
        Plain.objects.create(name="of the view")

    assert record_hit(article, page, refusals=[lambda context: get_hits(article) > 0]).refusal
    assert names() == {"of the view"}


def lose_the_transaction(*args: object) -> bool:
    """Do what a deadlock does on MySQL: roll everything back, savepoints included."""
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
    return ask_a_missing_table()


def close_the_connection(*args: object) -> bool:
    connection.close()
    return ask_a_missing_table()


@pytest.mark.parametrize(
    "loss",
    [
        lose_the_transaction,
        pytest.param(without_error(lose_the_transaction), id="hide_the_loss"),
        close_the_connection,
    ],
)
def test_view_learns_of_a_transaction_that_is_lost(article, record, monkeypatch, loss):
    """Otherwise it would go on, and commit half of what it wrote."""
    monkeypatch.setattr("tests.db.test_savepoints.failure", loss)
    with pytest.raises(TransactionLost), transaction.atomic():
        Plain.objects.create(name="of the view, before")
        record()
        Plain.objects.create(name="of the view, after")

    assert names() == set()


@contextmanager
def gone(model: type[Model]) -> Iterator[None]:
    """Rename the table of a model within the block."""
    table = model._meta.db_table
    with connection.schema_editor() as editor:
        editor.alter_db_table(model, table, "elsewhere")
    yield
    with connection.schema_editor() as editor:
        editor.alter_db_table(model, "elsewhere", table)


def test_session_that_cannot_be_read_breaks_no_page(buffer, article, settings, monkeypatch):
    """The session's table is gone; the view does not ask for the session, and is atomic."""
    monkeypatch.setattr(visitors, "_breaker", Breaker("The database of sessions"))
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"repeat": "daily"}}}
    settings.MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]
    client = Client(headers=BROWSER)
    client.cookies["sessionid"] = "x" * 32

    with gone(Session):
        for _ in range(2):
            assert client.get(f"/atomic/{article.pk}/").status_code == 200

    assert article.hits == 1


def test_content_type_that_cannot_be_read_breaks_no_transaction(article):
    ContentType.objects.clear_cache()
    with gone(ContentType), transaction.atomic():
        assert record_hit(article).refusal == "unavailable"
        Plain.objects.create(name="of the view")

    assert names() == {"of the view"}
