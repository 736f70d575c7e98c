"""The database is away, locked or read-only: no page fails, and nothing counts twice."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import chain
from types import SimpleNamespace
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError, connection, connections, transaction
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils.functional import SimpleLazyObject

from django_hitcount import outages, rankings, visitors
from django_hitcount.buffers import get_buffer
from django_hitcount.db import counter_keys, slots, sums
from django_hitcount.outages import PAGE_READ_SECONDS, SLOW_CALLS, Breaker
from django_hitcount.reading import get_hits
from django_hitcount.recording import Hit, record_hit, record_hits
from tests import children
from tests.answers import failing_at_first, lost_commit_answer
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.ranked import add_totals
from tests.tables import slot_sums
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


class LockConflict(OperationalError):
    """The error that Django raises from an error of psycopg."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("another session was in the way")
        self.__cause__ = Exception()
        self.__cause__.sqlstate = sqlstate


def away(*args, **kwargs):
    raise OperationalError("server has gone away")


@pytest.mark.parametrize("in_transaction", [False, True])
def test_page_is_served_without_what_is_popular(article, caplog, in_transaction):
    template = Template(
        "{% load hitcount %}{% popular_objects 'app.Article' 5 as found %}{{ found|length }}"
    )
    record_hit(article)

    with (
        transaction.atomic() if in_transaction else nullcontext(),
        mock.patch.object(rankings, "read_rankings", a_wrong_statement),
    ):
        assert template.render(Context()) == "0"
        assert Article.objects.get() == article

    assert template.render(Context()) == "1"
    assert "A ranking cannot be read" in caplog.text


def test_a_database_that_is_away_is_asked_once_for_what_is_popular():
    template = Template("{% load hitcount %}{% popular_objects 'app.Article' 5 as found %}")

    with mock.patch.object(rankings, "read_rankings", side_effect=away) as read:
        template.render(Context())
        template.render(Context())

    assert read.call_count == 1


def test_slow_rankings_leave_no_other_number_out(article, monkeypatch):
    """A ranking of many objects may take a second, as often as a page is shown."""
    template = Template(
        "{% load hitcount %}{% popular_objects 'app.Article' 5 as found %}{% hits article %}"
    )
    late, read = [0.0], rankings.read_rankings

    def read_slowly(*args, **kwargs):
        late[0] += PAGE_READ_SECONDS
        return read(*args, **kwargs)

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late[0])
    monkeypatch.setattr(outages, "time", clock)
    record_hit(article)
    with mock.patch.object(rankings, "read_rankings", read_slowly):
        pages = [
            template.render(Context({"article": Article.objects.get(), "request": request_of(1)}))
            for _ in range(2 * SLOW_CALLS)
        ]

    assert pages == ["1"] * 2 * SLOW_CALLS


@pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])
def test_transaction_of_another_database_survives_a_ranking_of_its_objects():
    objects = Article.objects.using("elsewhere")

    def look_up(*args):
        a_wrong_statement(using="elsewhere")

    add_totals({(Article.objects.create(title="Tea"), 0): 3})
    template = Template("{% load hitcount %}{% popular_objects objects 5 as found %}")
    with (
        transaction.atomic("elsewhere"),
        mock.patch.object(rankings, "filter_by_texts", look_up),
        CaptureQueriesContext(connections["elsewhere"]) as captured,
    ):
        template.render(Context({"objects": objects}))
        assert not objects.exists()

    assert "ROLLBACK TO SAVEPOINT" in captured[-3]["sql"]


def a_wrong_statement(*args, using="default", **kwargs):
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def test_page_is_served_without_a_count(article, settings, caplog):
    with (
        mock.patch.object(slots, "add_hits", away),
        mock.patch.object(sums, "read_sums", away),
    ):
        response = Client(headers=BROWSER).get(f"/articles/{article.pk}/")

    assert (response.status_code, response.content) == (200, b"\n")
    assert "not counted" in caplog.text


@pytest.mark.parametrize("tag", ["hit_count", "hits"])
@pytest.mark.parametrize("request_", [RequestFactory(headers=BROWSER).get("/"), None])
def test_first_page_of_a_process_is_served_without_a_count(article, tag, request_):
    """Not even the content type of the model is known yet."""
    ContentType.objects.clear_cache()
    context = Context({"article": article, "request": request_})
    template = Template("{% load hitcount %}[{% " + tag + " article %}]")

    with mock.patch.object(counter_keys, "_look_up", away):
        assert template.render(context) == "[]"


def test_result_says_why(article):
    with mock.patch.object(slots, "add_hits", away):
        assert record_hit(article) == Hit(False, "unavailable", 0)


READ_ONLY = {
    "sqlite": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF"),
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE"),
    "postgresql": (
        "SET default_transaction_read_only = on",
        "SET default_transaction_read_only = off",
    ),
}


@pytest.fixture
def read_only_database():
    on, off = READ_ONLY[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(on)
        yield
        cursor.execute(off)


def test_read_only_database_refuses_hits_and_serves_pages(article, read_only_database):
    assert record_hit(article) == Hit(False, "unavailable", 0)
    assert Client(headers=BROWSER).get(f"/articles/{article.pk}/").content == b"0\n"


def test_failed_query_of_ours_does_not_spoil_the_transaction_of_the_view(redis_buffer, article):
    """PostgreSQL refuses every further query after an error that no savepoint caught."""
    fails = sums.read_sums

    def broken(*args, **kwargs):
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM there_is_no_such_table")
        return fails(*args, **kwargs)

    with transaction.atomic():
        with mock.patch.object(sums, "read_sums", broken):
            assert record_hit(article) == Hit(True, None, None)
        article.title = "changed by the view"
        article.save()

    assert get_hits(article) == 1


def test_content_type_of_another_time_reaches_no_page(article):
    """Another process deleted its row and created it again, so the cached id is wrong."""
    model = ContentType.objects.get_for_model(Article)
    model.pk = 2**31 - 2

    assert record_hit(article).refusal == "unavailable"
    assert record_hit(article).counted


@pytest.mark.usefixtures("endless_pauses")
def test_database_that_fails_is_left_alone_for_a_while(article):
    calls = []

    def slow(*args, **kwargs):
        calls.append(args)
        raise OperationalError("locked")

    with mock.patch.object(slots, "add_hits", slow):
        refusals = [record_hit(article).refusal for _ in range(5)]
        tries = len(calls)
        record_hit(article)

    assert refusals == ["unavailable"] * 5
    assert len(calls) == tries
    assert record_hit(article).refusal == "unavailable"
    get_buffer()._breaker.try_now()
    assert record_hit(article).counted


def test_redis_counts_on_while_the_database_is_away(redis_buffer, article):
    record_hit(article)
    with (
        mock.patch.object(slots, "add_hits", away),
        mock.patch.object(sums, "read_sums", away),
    ):
        assert record_hit(article) == Hit(True, None, 2)


def test_lost_commit_answer_of_a_direct_hit_is_not_repeated(article):
    """It is unknown whether the hit counted; it must not count twice."""
    with lost_commit_answer():
        assert record_hit(article).refusal == "unavailable"

    assert slot_sums([article]) == {article: 1}


@pytest.mark.usefixtures("hits_are_patient")
def test_deadlock_of_a_direct_hit_is_tried_again(article):
    with failing_at_first(slots, "add_hits", OperationalError("deadlock"), times=3):
        assert record_hit(article) == Hit(True, None, 1)


@pytest.mark.usefixtures("hits_are_patient")
@pytest.mark.parametrize(
    "error", [LockConflict("40001"), LockConflict("40P01"), OperationalError(1213, "Deadlock")]
)
def test_commit_that_was_rolled_back_is_tried_again(article, error):
    """A serialization failure or a deadlock says for certain that nothing was committed."""
    wrapper = type(connections["default"])
    commit, errors = wrapper._commit, [error] * 3

    def fail(self):
        if errors:
            self._rollback()
            raise errors.pop()
        commit(self)

    with mock.patch.object(wrapper, "_commit", fail):
        assert record_hit(article) == Hit(True, None, 1)


@pytest.mark.usefixtures("hits_wait_for_all_locks")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="others lock what they read")
@pytest.mark.parametrize("options", [{}, {"repeat": 60, "visitors": True}])
def test_serializable_transactions_lose_nothing(settings, options):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    articles = [Article.objects.create(title=title) for title in ("Tea", "Jam")]

    def record(thread: int) -> list[str | None]:
        request = RequestFactory(headers=BROWSER).get("/")
        refusals = []
        for number in range(40):
            request.META["REMOTE_ADDR"] = f"10.0.{thread}.{number}"
            refusals += [hit.refusal for hit in record_hits(articles, request)]
        connection.close()
        return refusals

    def record_in_threads() -> None:
        serializable()
        with ThreadPoolExecutor(8) as threads:
            refusals = Counter(chain(*threads.map(record, range(8))))
        assert refusals == {None: 640}

    assert children.run(record_in_threads) == 0
    assert slot_sums(articles) == dict.fromkeys(articles, 320)


def serializable() -> None:
    from django.db.backends.postgresql.psycopg_any import IsolationLevel

    connection.settings_dict["OPTIONS"] = {"isolation_level": IsolationLevel.SERIALIZABLE}


def test_forked_children_do_not_share_the_numbers_of_their_parent(redis_buffer, article):
    """Otherwise Redis would take a child's hit for one of the parent's, sent again."""
    for _ in range(3):
        record_hit(article)

    def record() -> None:
        for _ in range(3):
            assert record_hit(article).counted

    assert [children.run(record), children.run(record)] == [0, 0]
    assert get_hits(article) == 9


class SessionsAway(SessionStore):
    """A session store that counts reads, and whose database does not answer."""

    asked = 0

    def load(self):
        type(self).asked += 1
        raise OperationalError("away")


@pytest.mark.usefixtures("endless_pauses")
def test_sessions_that_are_away_are_read_once(redis_buffer, settings, monkeypatch, caplog):
    options = {"repeat": "daily", "visitors": True}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    monkeypatch.setattr(visitors, "_breaker", Breaker("The database of sessions"))
    article = Article.objects.create(title="Tea")
    request = RequestFactory(headers=BROWSER).get("/")
    for _ in range(3):
        request.session = SessionsAway("somebody")
        request.user = SimpleLazyObject(lambda: None)
        assert article.record_hit(request).refusal in {None, "repeat"}

    assert SessionsAway.asked == 1
    assert "Traceback" not in caplog.text
    assert article.hits == 1


def test_hit_of_a_page_is_lost_if_its_key_cannot_be_read(article, caplog, monkeypatch):
    """Trying again would forget the amount, the day and the refusal of the call."""
    request = RequestFactory(headers=BROWSER).get("/")
    with monkeypatch.context() as patch:
        patch.setattr("django_hitcount.recording.counter_key", away)
        hit = record_hit(article, request, amount=5, once_per_request=True)

    assert hit == Hit(False, "unavailable", None)
    assert "server has gone away" in caplog.text
    assert get_hits(article) == 0
