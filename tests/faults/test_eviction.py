"""Redis evicts keys, any of them, while a flush is halfway: no hit counts twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import pytest
from django.db import connections

from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import record_hit
from django_hitcount.totals import get_total
from tests.app.models import Article
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, AFTER = 10, 3
"""Hits before a flusher dies, and after the eviction."""


@pytest.fixture(autouse=True)
def one_partition(redis_buffer, settings) -> None:
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1}


class Death(BaseException):
    """A flusher dies."""


@contextmanager
def dies_at_commit(*, after: bool) -> Iterator[None]:
    """The flusher dies at the COMMIT of the hits: before it, or as soon as it has happened."""
    wrapper: Any = type(connections["default"])
    commit = wrapper._commit

    def die(self: Any) -> None:
        has_hits = HitSlot.objects.exists()
        if after:
            commit(self)
        if has_hits:
            self.close()
            raise Death

    with mock.patch.object(wrapper, "_commit", die), suppress(Death):
        yield


@contextmanager
def dies_never() -> Iterator[None]:
    yield


STEPS = {
    "before the claim": None,
    "before the COMMIT": lambda: dies_at_commit(after=False),
    "after the COMMIT": lambda: dies_at_commit(after=True),
    "never": dies_never,
}


def record_and_flush(article: Article, step: str) -> None:
    """Record hits, and let a flusher die at a step."""
    record_hit(article, amount=BEFORE)
    if flushing := STEPS[step]:
        with flushing():
            flush()


def names_without_hits(redis) -> list[bytes]:
    """The keys that are no hashes: all hits are in hashes."""
    return sorted(name for name in redis.scan_iter() if redis.type(name) != b"hash")


def all_subsets(names: list[bytes]) -> Iterable[tuple[bytes, ...]]:
    return (
        chosen
        for size in range(1, len(names) + 1)
        for chosen in itertools.combinations(names, size)
    )


def restore(redis, article: Article, dump: dict[bytes, bytes], hits: int) -> None:
    redis.flushall()
    for name, value in dump.items():
        redis.restore(name, 0, value)


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_keys_that_hold_no_hits(redis, step):
    """Any of them, in any company: each hit counts once."""
    wrong = {}
    names = {}
    for number in itertools.count():
        redis.flushall()
        article = Article.objects.create()
        record_and_flush(article, step)
        names = {number: names_without_hits(redis)}
        break
    count = len(names[0])
    for places in all_subsets(list(range(count))):
        redis.flushall()
        article = Article.objects.create()
        record_and_flush(article, step)
        evicted = [names_without_hits(redis)[place] for place in places]
        redis.delete(*evicted)
        record_hit(article, amount=AFTER)
        flush()
        found = slot_sums([article])[article]
        if not found == daily_sums([article])[article] == BEFORE + AFTER:
            wrong[tuple(evicted)] = found
    assert wrong == {}
