"""Much is recorded at once, or has to be caught up: all of it arrives, in pieces."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from django.db import connections
from django.db.models import Model, Sum

from django_hitcount.buffers import get_buffer
from django_hitcount.db.tables import DailyHitSlot, HitSlot, MissedRecord
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests import settings as test_settings
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.proxies import Proxy
from tests.servers import HOST, Valkey
from tests.tables import slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

SLOW_MICROSECONDS = 50_000
"""No command may keep others waiting for longer."""

LARGE_BYTES = 300_000
"""No command is larger: how long it takes depends on the machine, and its size does not."""

FLUSHES = 5
"""Most flushes that may be needed on a busy machine, where a piece may fail by chance."""

TRIES = 3
"""In how many runs a command may be slow by chance."""


@pytest.fixture(autouse=True)
def watched(own_valkey) -> None:
    """Redis logs slow commands and large ones."""
    own_valkey.stop()
    own_valkey.options = [
        *own_valkey.options,
        *("--slowlog-log-slower-than", str(SLOW_MICROSECONDS)),
        *("--commandlog-request-larger-than", str(LARGE_BYTES)),
    ]
    own_valkey.start()


@pytest.fixture
def default_timeout(settings) -> None:
    change_alias(settings, OPTIONS={})


def sum_of(table: type[Model]) -> int:
    return int(table._default_manager.aggregate(total=Sum("hits"))["total"] or 0)


def make_articles(count: int) -> list[Article]:
    return Article.objects.bulk_create((Article() for _ in range(count)), batch_size=1000)


def record_told(articles: Sequence[Article]) -> int:
    """Record a hit on each; returns how many are told to be counted."""
    return sum(hit.counted for hit in record_hits(articles))


def record_pages(articles: Sequence[Article], *, pages: int, objects: int) -> int:
    """Record pages of some articles; returns how many hits are told to be counted."""
    chance = random.Random(pages)
    return sum(record_told(chance.sample(articles, objects)) for _ in range(pages))


def record_pages_without_redis(
    server: Valkey, articles: Sequence[Article], *, pages: int, objects: int
) -> int:
    in_redis = articles[:1000]
    told = record_told(in_redis)  # Redis has totals of them, which are then wrong.
    server.stop()
    told += record_pages(articles, pages=pages, objects=objects)
    server.start()
    get_buffer.cache_clear()
    return told


def flush_in_few_tries() -> list[Exception]:
    """Flush until it succeeds; returns the errors of the flushes before."""
    errors = []
    for _ in range(FLUSHES):
        try:
            flush_hits()
        except (BufferUnavailable, ExceptionGroup) as exc:
            errors.append(exc)
        else:
            break
    return errors


def assert_no_large_command(server: Valkey) -> None:
    found = server.ask("COMMANDLOG", "GET", "-1", "large-request")
    assert [(size, words[:3]) for _, _, size, words, *_ in found] == []


def slow_commands(server: Valkey) -> set[bytes]:
    """
    The commands and scripts of the slow log.

    On a busy machine, the server may have had to wait for the processor. A command that takes long
    by itself is there each time.
    """
    return {b" ".join(words[:2]) for _, _, _, words, *_ in server.ask("SLOWLOG", "GET", "-1")}


@pytest.mark.usefixtures("default_timeout")
@pytest.mark.parametrize("objects", [60, 150])
def test_outage_of_many_pages_is_caught_up(own_valkey, objects):
    articles = make_articles(30_000)
    told = record_pages_without_redis(own_valkey, articles, pages=500, objects=objects)

    assert len(flush_in_few_tries()) < FLUSHES
    assert not MissedRecord.objects.exists()
    assert sum_of(HitSlot) == sum_of(DailyHitSlot) == told
    assert sum(get_hits(articles[:1000]).values()) == sum(slot_sums(articles[:1000]).values())


@pytest.mark.usefixtures("default_timeout")
def test_many_objects_at_once():
    told = record_told(make_articles(30_000))

    assert len(flush_in_few_tries()) < FLUSHES
    assert not MissedRecord.objects.exists()
    assert sum_of(HitSlot) == sum_of(DailyHitSlot) == told == 30_000


def test_redis_that_restarts_under_a_flush_of_many_objects(own_valkey, settings):
    """Totals that it loads before the COMMIT lack the hits of the batch: they are discarded."""
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1}
    articles = make_articles(20_000)
    for at in range(0, len(articles), 500):
        assert record_told(articles[at : at + 500]) == 500
    wrapper: Any = type(connections["default"])
    commit, left = wrapper._commit, [own_valkey]

    def restart_and_commit(self: Any) -> None:
        if left and sum_of(HitSlot):
            left.pop().stop(signal.SIGKILL)
            own_valkey.start()
        commit(self)

    with mock.patch.object(wrapper, "_commit", restart_and_commit):
        flush_in_few_tries()
    assert not left
    assert sum_of(HitSlot) == sum_of(DailyHitSlot) == 20_000
    assert set(get_hits(articles[:1000]).values()) == {1}
    assert_no_large_command(own_valkey)


def test_failure_to_catch_up_stops_no_partition(own_valkey, settings):
    """What Redis missed cannot be delivered, and what Redis has can be flushed."""
    proxy = Proxy(own_valkey.port)
    proxy.start()
    change_alias(settings, LOCATION=f"redis://{HOST}:{proxy.port}/0")
    first, *others = make_articles(1000)
    record_hits([first])
    flush_hits()
    own_valkey.stop()
    record_hits(others)
    own_valkey.start()
    get_buffer.cache_clear()
    record_hits([first])
    proxy.accepts = lambda question: b":total:" not in question  # As of those to discard.

    with pytest.raises(ExceptionGroup):
        flush_hits()
    assert slot_sums([first]) == {first: 2}
    proxy.accepts = bool
    flush_hits()
    assert not MissedRecord.objects.exists()
    proxy.stop()


@pytest.mark.skipif(test_settings.DATABASE != "sqlite", reason="the commands to Redis are the same")
@pytest.mark.usefixtures("default_timeout")
def test_long_outage_and_then_very_many_objects_at_once(own_valkey):
    """With the default timeout, everything is flushed; and no command keeps others waiting."""
    articles = make_articles(100_000)
    told = record_pages_without_redis(own_valkey, articles, pages=1000, objects=200)
    told += record_told(articles)

    assert len(flush_in_few_tries()) < FLUSHES
    assert not MissedRecord.objects.exists()
    assert sum_of(HitSlot) == sum_of(DailyHitSlot) == told == 301_000
    assert_no_large_command(own_valkey)
    slow = slow_commands(own_valkey)
    for _ in range(TRIES):
        if not slow:
            break
        own_valkey.ask("SLOWLOG", "RESET")
        record_told(articles)
        flush_in_few_tries()
        slow &= slow_commands(own_valkey)
    assert not slow
