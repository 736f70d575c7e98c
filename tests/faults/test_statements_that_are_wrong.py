"""A statement that the database rejects opens no breaker, as it says nothing about the server."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.utils import InterfaceError
from django.test import RequestFactory

from django_hitcount import visitors
from django_hitcount.buffers.redis.link import AnswerLost
from django_hitcount.db.transactions import is_server_away
from django_hitcount.exceptions import BufferUnavailable, TransactionLost
from django_hitcount.outages import Breaker, page_read_breaker
from django_hitcount.page_numbers import page_number
from django_hitcount.recording import record_hit
from django_hitcount.visitors import identify
from tests.app.models import Article, Plain
from tests.browsers import BROWSER
from tests.faults.test_database_away import READ_ONLY
from tests.servers import HOST, reserve_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def breaker(monkeypatch) -> Breaker:
    made = Breaker("The database")
    monkeypatch.setattr(visitors, "_breaker", made)
    return made


def visitor(key: str) -> str | None:
    """The identity of a request with the session ``key``."""
    request = RequestFactory(headers=BROWSER).get("/")
    request.session = SessionStore(key)
    return identify(request)


@pytest.fixture
def session_key() -> str:
    store = SessionStore()
    store["basket"] = [1]
    store.save()
    assert store.session_key
    return store.session_key


@pytest.fixture
def sessions_in_latin1() -> Iterator[None]:
    """As of a database that was made long ago: an emoji cannot be compared with its keys."""
    table = Session._meta.db_table
    change = f"ALTER TABLE {table} CONVERT TO CHARACTER SET "
    with connection.cursor() as cursor:
        cursor.execute(f"{change} latin1")
        yield
        cursor.execute(f"{change} utf8mb4")


@pytest.mark.skipif(connection.vendor != "mysql", reason="others have no such tables")
def test_emoji_in_a_cookie_affects_no_other_visitor(
    breaker, session_key, sessions_in_latin1, caplog
):
    """Nor would it if it were looked for."""
    assert str(visitor("\U0001f36a" * 8)).startswith("address:")
    assert not caplog.records
    with mock.patch.object(visitors, "is_forged", return_value=False):
        assert str(visitor("\U0001f36a" * 8)).startswith("address:")
    assert "Illegal mix of collations" in caplog.text

    assert not breaker.is_open
    assert visitor(session_key) == f"session:{session_key}"


def test_statement_of_a_transaction_that_the_view_has_spoiled(breaker, session_key):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with connection.cursor() as cursor, pytest.raises(DatabaseError):
            cursor.execute("SELECT * FROM there_is_no_such_table")
        visitor(session_key)
        raise ZeroDivisionError

    assert not breaker.is_open
    assert visitor(session_key) == f"session:{session_key}"


class Asking(WSGIRequest):
    """A request that queries for its user, as a project's own may."""

    @property
    def user(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM there_is_no_such_table")


def test_user_that_cannot_be_read_spoils_no_transaction():
    request = Asking(RequestFactory(headers=BROWSER).get("/").environ)
    with transaction.atomic():
        assert str(identify(request)).startswith("address:")
        assert not Article.objects.exists()


def test_sessions_that_are_lost_within_a_transaction_open_the_breaker(breaker):
    """The error that says so becomes a TransactionLost, which says nothing about the server."""

    class Lost(SessionStore):
        def load(self):
            connection.closed_in_transaction = True
            raise OperationalError("server closed the connection")

    request = RequestFactory(headers=BROWSER).get("/")
    request.session = Lost("somebody")
    with pytest.raises(TransactionLost), transaction.atomic():
        try:
            identify(request)
        finally:
            connection.closed_in_transaction = False

    assert breaker.is_open


def test_totals_of_a_transaction_that_the_view_has_spoiled():
    record_hit(Article.objects.create(title="Tea"))
    article = Article.objects.get()  # It does not remember its hits.
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with connection.cursor() as cursor, pytest.raises(DatabaseError):
            cursor.execute("SELECT * FROM there_is_no_such_table")
        page_number(None, article, counter="views")
        raise ZeroDivisionError

    assert not page_read_breaker().is_open
    assert page_number(None, article, counter="views") == 1


WRONG = [
    "SELECT * FROM there_is_no_such_table",
    "SELECT there_is_no_such_function(1)",
    "SELECT there_is_no_such_column FROM django_session",
    "this is no statement",
    "ROLLBACK TO SAVEPOINT there_is_none",
]


@pytest.mark.parametrize("sql", WRONG)
def test_wrong_statement(breaker, sql):
    with connection.cursor() as cursor, pytest.raises(DatabaseError), breaker.guard():
        cursor.execute(sql)

    assert not breaker.is_open


def test_value_that_does_not_fit(breaker):
    with pytest.raises((DatabaseError, OverflowError)), breaker.guard():
        Plain.objects.create(name="x" * 51, pk=2**80)

    assert not breaker.is_open


def test_server_that_is_not_there(breaker):
    other = connection.copy()
    nowhere = {"HOST": HOST, "PORT": str(reserve_port())}
    if connection.vendor == "sqlite":
        nowhere = {"NAME": "/there/is/no/such/directory/db"}
    other.settings_dict = {**other.settings_dict, **nowhere}
    with pytest.raises(OperationalError), breaker.guard():
        other.ensure_connection()

    assert breaker.is_open


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server")
@pytest.mark.parametrize("setting", ["USER", "NAME"])
def test_server_that_accepts_no_connection(breaker, setting):
    other = connection.copy()
    other.settings_dict = {**other.settings_dict, setting: "somebody_else"}
    with pytest.raises(OperationalError), breaker.guard():
        other.ensure_connection()

    assert breaker.is_open


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server")
def test_connection_that_is_cut(breaker):
    kill, own = {
        "postgresql": ("SELECT pg_terminate_backend(%s)", "SELECT pg_backend_pid()"),
        "mysql": ("KILL %s", "SELECT CONNECTION_ID()"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(own)
        (number,) = cursor.fetchone()
    killer = connection.copy()
    with killer.cursor() as cursor:
        cursor.execute(kill, [number])
    killer.close()
    with pytest.raises((OperationalError, InterfaceError)), breaker.guard():
        Plain.objects.exists()
    connection.close()

    assert breaker.is_open


def test_read_only_server(breaker):
    on, off = READ_ONLY[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(on)
        with pytest.raises(DatabaseError), breaker.guard():
            Article.objects.create(title="Tea")
        cursor.execute(off)

    assert breaker.is_open


@pytest.mark.parametrize("error", [OperationalError("away"), BufferUnavailable(), AnswerLost()])
def test_what_has_no_code_says_that_the_server_is_away(error):
    assert is_server_away(error)


@pytest.mark.parametrize("error", [DatabaseError("?"), ValueError(), KeyboardInterrupt()])
def test_other_errors_do_not(error):
    assert not is_server_away(error)
