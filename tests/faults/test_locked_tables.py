"""Tables are locked: a page waits for them once, and shows no totals."""

from __future__ import annotations

import signal
import time
from collections import Counter
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError, connection
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.buffers import database, get_buffer
from django_hitcount.counters.numbers import Number
from django_hitcount.db import daily_visitors, slots, sums
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.numbers import read_numbers
from django_hitcount.outages import page_read_breaker
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.locks import locked_tables
from tests.servers import wait_until
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles(settings) -> list[Article]:
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    ContentType.objects.get_for_model(Article)
    return [Article.objects.create(title=title) for title in ("Tea", "Coffee", "Water")]


def render(articles: list[Article], tag: str) -> str:
    """A page with a tag for each article."""
    template = Template(
        "{% load hitcount %}{% for article in articles %}[{% " + tag + " article %}]{% endfor %}"
    )
    request = RequestFactory(headers=BROWSER).get("/")
    return template.render(Context({"articles": articles, "request": request}))


@pytest.mark.usefixtures("endless_pauses")
@pytest.mark.parametrize(
    ("tag", "read"),
    [
        ("hits", (sums, "read_sums")),
        ("visitors", (daily_visitors, "read_days")),
    ],
)
def test_locked_tables_cost_one_wait_and_then_nothing(articles, tag, read):
    """Not one for each tag, and not one for each page."""
    module, name = read
    record_hits(articles)
    articles = [*Article.objects.order_by("pk")]  # These remember nothing.
    with mock.patch.object(module, name, side_effect=getattr(module, name)) as reads:
        with locked_tables():
            assert [render(articles, tag) for _ in range(3)] == ["[][][]"] * 3
            assert reads.call_count == 1
        wait_until(lambda: shows_numbers(articles, tag), "numbers")


def shows_numbers(articles: list[Article], tag: str) -> bool:
    page_read_breaker().try_now()
    return "[]" not in render(articles, tag)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
def test_hits_of_a_page_wait_for_locks_once(articles):
    """The first one in vain; each of the others tries one slot."""
    choose = slots.choose_slots
    tries_by_hit: Counter[object] = Counter()

    def count_tries():
        hit = object()
        for slot in choose():
            tries_by_hit[hit] += 1
            yield slot

    with locked_tables(), mock.patch.object(slots, "choose_slots", count_tries):
        render(articles, "hit_count")

    assert sorted(tries_by_hit.values())[:-1] == [1, 1]
    assert max(tries_by_hit.values()) > 1


def test_database_that_does_not_take_a_hit_in_time_is_not_read(articles, monkeypatch):
    """The page has waited for it."""

    def silence(*args, **kwargs):
        time.sleep(0.6)  # What is slow here is the server.
        raise OperationalError("timeout expired")

    monkeypatch.setattr(database, "in_transaction", silence)
    with mock.patch.object(sums, "read_sums") as reads:
        assert render(articles, "hit_count") == "[][][]"
    assert not reads.called


def test_get_total_waits_for_it(articles):
    """get_hits() raises: what to do without the number is for its caller to say."""
    with locked_tables():
        render(articles, "hits")
        for _ in range(2):
            with pytest.raises(OperationalError):
                get_hits(articles[0])


def test_totals_that_are_in_redis_are_shown(redis_buffer, articles):
    tea, _, water = articles
    record_hits([tea, water])
    get_hits([tea, water])
    keys = [Number(counter_key(article, counter="views")) for article in articles]
    with locked_tables():
        assert read_numbers(keys, on_page=True) == {keys[0]: 1, keys[2]: 1}
        assert page_read_breaker().is_open
        assert render(articles, "hits") == "[1][][1]"


def test_slow_read_of_missed_hits_does_not_count_as_a_slow_redis(own_valkey, articles, clock):
    """Missed hits cannot be read, so they reach Redis later; new hits go to Redis at once."""
    tea = articles[0]
    record_hit(tea)
    own_valkey.stop(signal.SIGKILL)
    record_hit(tea)
    own_valkey.start()
    get_buffer()._breaker.try_now()

    def take_long(execute, *args):
        clock.now += get_buffer()._breaker.timeout_seconds
        return execute(*args)

    with locked_tables(), connection.execute_wrapper(take_long):
        assert record_hit(tea).counted
        assert not get_buffer()._breaker.is_open

    flush_hits()
    assert slot_sums([tea]) == {tea: 3}
