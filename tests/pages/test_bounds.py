"""Random addresses cannot fill the table of pages."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import time_machine
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse
from django.test import Client

from django_hitcount import flush_hits
from django_hitcount.buffers.redis.link import Link
from django_hitcount.db.tables import CountedAddress
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.known_rows import clear_known_rows
from django_hitcount.outages import page_writes
from django_hitcount.pages import paths
from django_hitcount.pages.middleware import PageHitsMiddleware
from django_hitcount.pages.models import Page
from django_hitcount.testing import BrowserRequestFactory
from tests.browsers import BROWSER
from tests.pages.site import counts
from tests.visiting import refused_today

pytestmark = pytest.mark.django_db(transaction=True)


def answer(request: HttpRequest) -> HttpResponse:
    return HttpResponse("a page")


def visit(number: int) -> None:
    """Every tenth request is for a page that is known, all others for one that nobody knows."""
    path = "/tea/" if number % 10 == 0 else f"/{secrets.token_hex(8)}/"
    PageHitsMiddleware(answer)(BrowserRequestFactory().get(path))


def flood(requests: int, threads: int = 4) -> None:
    barrier = threading.Barrier(threads, timeout=60)

    def close(_: int) -> None:
        barrier.wait()  # So that each thread closes its own.
        connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(visit, range(requests)))
        list(pool.map(close, range(threads)))


@pytest.mark.parametrize(
    "requests", [200, pytest.param(60_000, marks=pytest.mark.long)], ids=["some", "minute"]
)
def test_table_stays_within_the_bound_and_known_pages_count_exactly(
    counted, browser, settings, monkeypatch, requests
):
    """60,000 are a minute of 1,000 a second. Without Redis, they would take twice as long."""
    # On a machine that is busy with other tests, a page would give up on a slow statement.
    monkeypatch.setattr(page_writes, "LOCK_WAIT_SECONDS", 20)
    requests //= 10 if requests > 1000 and not settings.HITCOUNT["REDIS"] else 1
    counted(new_per_hour=50)
    browser.get("/tea/")
    with time_machine.travel("2026-03-10 12:10:00Z", tick=False):
        flood(requests)
        made = Page.objects.count()
        flush_hits()
        found = counts()

        assert 40 <= made <= 51
        assert found["/tea/"] == 1 + requests // 10
        assert found[""] == 1 + requests
        assert refused_today() == {("views", "path_limit"): requests - requests // 10 - (made - 1)}


def test_next_hour_has_new_paths_again(counted, browser):
    counted(new_per_hour=2)
    for hour in ("12:59", "13:01"):
        with time_machine.travel(f"2026-03-10 {hour}:00Z", tick=False):
            for number in range(4):
                browser.get(f"/{hour}/{number}/")

    assert Page.objects.count() == 4


def test_bound_is_one_for_all_processes(counted, browser):
    counted(new_per_hour=2)
    with time_machine.travel("2026-03-10 12:10:00Z", tick=False):
        for number in range(4):
            clear_known_rows()  # As another process.
            paths._full.clear()
            browser.get(f"/{number}/")

    assert Page.objects.count() == 2


def test_paths_not_found_have_a_bound_of_their_own(counted, browser):
    counted(new_per_hour=2, not_found="lost", counters={"lost": {}})
    with time_machine.travel("2026-03-10 12:10:00Z", tick=False):
        for number in range(4):
            browser.get(f"/{number}/?status=404")
        browser.get("/tea/")

        assert Page.objects.count() == 3
        assert counts()[""] == 1
        assert refused_today() == {("lost", "path_limit"): 2}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one lock for the whole file")
@pytest.mark.parametrize("model", [CountedAddress, Page])
def test_new_page_does_not_wait_for_a_table_that_is_locked(counted, browser, settings, model):
    """As by a backup. What reads the tables does not meet this lock."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    browser.get("/tea/")
    table, is_mysql = model._meta.db_table, connection.vendor == "mysql"
    lock = f"LOCK TABLES {table} READ" if is_mysql else f"BEGIN; LOCK TABLE {table} IN SHARE MODE"
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(lock)
        with ThreadPoolExecutor(1) as pool:
            page = pool.submit(browser.get, "/mate/")
            is_answered = not wait([page], timeout=30).not_done
            other.close()
            pool.submit(connections.close_all)
    finally:
        other.close()

    assert is_answered
    assert counts() == {"/tea/": 1, "": 2}


def test_while_redis_is_away_the_database_keeps_the_bound(
    redis_buffer, counted, browser, monkeypatch
):
    def away(*args: object) -> bool:
        raise BufferUnavailable("away")

    monkeypatch.setattr(Link, "exchange", away)
    counted(new_per_hour=2)
    with time_machine.travel("2026-03-10 12:10:00Z", tick=False):
        for number in range(4):
            browser.get(f"/{number}/")

    assert Page.objects.count() == 2


def test_many_who_see_a_new_page_first_make_it_once(counted, browser):
    barrier = threading.Barrier(8, timeout=60)

    def see(number: int) -> int:
        browser = Client(headers=BROWSER)
        barrier.wait()
        status = browser.get("/tea/").status_code
        connections.close_all()
        return status

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(see, range(8))} == {200}

    assert counts() == {"/tea/": 8, "": 8}
