"""A server is away while a cached page sends its hits."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from django_hitcount import beacon, beacon_token, get_hits, views
from django_hitcount.beacon import RefusedTokens
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.testing import BrowserClient, override_hitcount
from tests.app.models import Article
from tests.beacon.sending import send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


def fail_with(error: Exception):
    def fail(*args, **kwargs):
        raise error

    return fail


def test_page_tries_again_when_the_database_is_back(article, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(beacon, "find_by_texts", fail_with(OperationalError("gone away")))
        assert send([article]).status_code == 503
        assert BrowserClient().get(f"/seen/{beacon_token(article)}.gif").status_code == 200
    assert caplog.text.count("gone away") == 2
    assert get_hits(article) == 0

    assert [send([article]).status_code for _ in range(2)] == [200, 200]
    assert get_hits(article) == 1


def test_page_whose_hits_are_counted_does_not_try_again(article, monkeypatch, caplog):
    monkeypatch.setattr(views, "read_shown", fail_with(OperationalError("gone away")))
    shown = beacon_token(article, show="hits")
    response = send([article], [shown])

    assert response.status_code == 200
    assert response.json() == {"numbers": {shown: None}}
    assert get_hits(article) == 1
    assert "The numbers of a cached page cannot be read: gone away" in caplog.text


def test_hits_of_all_counters_are_counted_or_none(article, monkeypatch):
    """Nothing fails after the first hit is counted: the page would not get the others counted."""
    keys = iter([beacon.counter_key(article, counter="views"), OperationalError("gone away")])

    def find_key(*args, **kwargs):
        if isinstance(found := next(keys), Exception):
            raise found
        return found

    tokens = [beacon_token(article), beacon_token(article, counter="downloads")]
    with monkeypatch.context() as patch:
        patch.setattr(beacon, "counter_key", find_key)
        assert send(tokens).status_code == 503
    assert get_hits(article) == 0

    assert send(tokens).status_code == 200
    assert [get_hits(article), get_hits(article, counter="downloads")] == [1, 1]


@pytest.mark.parametrize("method", ["admit", "count_by_name"])
def test_database_remembers_views_while_redis_is_away(article, monkeypatch, method):
    if not get_buffer().keeps_hits:
        pytest.skip("This is about Redis.")
    monkeypatch.setattr(get_buffer(), method, fail_with(BufferUnavailable("away")), raising=True)

    for _ in range(2):
        assert send([article], view_id="first-view").status_code == 200
    send([article], view_id="second-view")

    assert get_hits(article) == 2


def test_hits_count_without_a_limit_while_no_visitor_key_can_be_read(article, monkeypatch):
    monkeypatch.setattr(beacon, "hash_address", fail_with(BufferUnavailable("away")))

    with override_hitcount(BEACON_HITS_PER_MINUTE=1):
        for number in range(2):
            send([article], view_id=f"view-number-{number}")

    assert get_hits(article) == 2


def test_no_limit(article):
    with override_hitcount(BEACON_HITS_PER_MINUTE=None):
        send([article])

    assert get_hits(article) == 1


def test_refused_tokens_that_cannot_be_written_are_logged(article, monkeypatch, caplog):
    tokens = RefusedTokens()
    tokens.add("bad_token", 3)
    monkeypatch.setattr(get_buffer(), "record", fail_with(OperationalError("gone away")))

    tokens.write()
    tokens.write()

    assert caplog.text.count("3 refused tokens are not in the report: gone away") == 1


def test_view_can_be_sent_again_if_its_limit_could_not_be_read(article, monkeypatch):
    with monkeypatch.context() as patch:
        for buffer in (get_buffer(), DatabaseBuffer):
            patch.setattr(buffer, "count_by_name", fail_with(OperationalError("gone away")))
        assert send([article]).status_code == 503

    assert send([article]).status_code == 200
    assert get_hits(article) == 1
