"""Foreign keys in Redis, under our names, fail no page and lose no other hits."""

from __future__ import annotations

import random
from contextlib import nullcontext, suppress
from unittest import mock

import pytest
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.link import RUN_ID_LETTERS
from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import flush_batch, flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import Hit, record_hit, record_hits
from tests import settings as test_settings
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


STRANGERS = {
    "text": lambda redis, key: redis.set(key, "rubbish"),
    "bytes": lambda redis, key: redis.set(key, b"\xff\xfe\n:"),
    "name in another spelling": lambda redis, key: redis.set(key, "x:007"),
    "name with a large number": lambda redis, key: redis.set(key, "x:" + 30 * "9"),
    "largest number": lambda redis, key: redis.set(key, 2**63 - 1),
    "list": lambda redis, key: redis.rpush(key, "rubbish"),
    "set": lambda redis, key: redis.sadd(key, "rubbish"),
    "stream": lambda redis, key: redis.xadd(key, {"a": 1}),
    "hash": lambda redis, key: redis.hset(key, "a", 1),
}


@pytest.mark.long
@pytest.mark.skipif(test_settings.DATABASE != "sqlite", reason="Redis alone is concerned")
class TestKeysOfSomebodyElse:
    """
    Whatever they hold: no page fails, each hit counts once, all are flushed.

    In place of hits, they keep others out until a flush: these go to the tables.
    """

    NAMES = (
        "pending",
        "batch",
        "sequence",
        "epoch",
        "runs",
        "malformed",
        "merged_sketches",
        "total",
    )

    @pytest.fixture
    def place(self, name, names, key):
        if name == "merged_sketches":
            return names.merged_sketches(day_of())
        return names.total(key.text) if name == "total" else getattr(names, name)

    @pytest.fixture(autouse=True)
    def counters(self, settings, article):
        views = {"repeat": "daily", "visitors": True}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": views}}

    def visit(self, article, client):
        """Record two hits of a visitor; returns the total."""
        request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{client}")
        hits = [record_hit(article, request) for _ in range(2)]
        assert [hit.refusal for hit in hits] == [None, "repeat"]
        return hits[-1].total

    @pytest.mark.parametrize("kind", STRANGERS)
    @pytest.mark.parametrize("name", NAMES)
    def test_before_and_between_hits(self, redis, article, name, kind, names, place):
        STRANGERS[kind](redis, place)
        is_total = name == "total" and kind == "largest number"

        assert is_total or get_hits(article) == 0
        assert self.visit(article, 1) == 1
        redis.delete(place)
        STRANGERS[kind](redis, place)
        is_kept_out = name in ("pending", "sequence") and kind != "hash"
        lost = int(name == "pending" and not is_kept_out)
        assert is_total or get_hits(article) in (1, 1 - lost)
        assert self.visit(article, 2) in (2, 2 - lost)

        # Visitors of the tables are kept out, too, until this flush has moved the value away.
        with pytest.raises(ExceptionGroup) if is_kept_out else nullcontext():
            flush_hits()
        flush_hits()
        expected = {article: 2 - lost}
        assert slot_sums([article]) == daily_sums([article]) == expected
        self.visit(article, 3)
        flush_hits()
        assert slot_sums([article]) == daily_sums([article]) == {article: expected[article] + 1}
        assert not redis.exists(names.pending, names.batch)

    @pytest.mark.parametrize("kind", ["list", "text", "hash"])
    def test_while_a_batch_is_set_aside(self, redis, article, kind, caplog, names, key):
        self.visit(article, 1)
        get_buffer().claim(key.partition(16))
        for place in (names.sequence, names.pending, names.epoch):
            redis.delete(place)
            STRANGERS[kind](redis, place)

        assert get_hits(article) == 1
        flush_hits()
        assert slot_sums([article]) == daily_sums([article]) == {article: 1}
        assert get_hits(article) == 1
        assert "did not write" in caplog.text

    @pytest.mark.parametrize("kind", ["list", "text", "hash"])
    def test_in_place_of_a_batch(self, redis, article, kind, caplog, names, key):
        """Its hits are gone. A flusher that has read them before still writes them once."""
        self.visit(article, 1)
        batch = get_buffer().claim(key.partition(16))
        redis.delete(names.batch)
        STRANGERS[kind](redis, names.batch)
        self.visit(article, 2)

        flush_batch(get_buffer(), batch)
        flush_hits()
        assert slot_sums([article]) == daily_sums([article]) == {article: 2}
        assert get_hits(article) == 2
        assert f"{names.malformed}:{names.batch}#" in caplog.text


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("with_visitors", [False, True])
def test_values_where_no_key_was_take_no_hit_away(
    redis, redis_buffer, settings, article, names, key, seed, with_visitors
):
    """In any order with hits and flushes. Nothing of ours is overwritten, so each hit counts."""
    options = {"repeat": "always", "visitors": with_visitors}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    chance = random.Random(seed)
    places = ["pending", "batch", "sequence", "malformed", "epoch", "runs"]
    hits = 0
    for number in range(40):
        event = chance.choice(["hit", "hit", "hit", "flush", "foreign"])
        if event == "hit":
            request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=f"203.0.113.{number}")
            assert record_hit(article, request).counted
            hits += 1
        elif event == "flush":
            with suppress(ExceptionGroup):
                flush_hits()
        else:
            redis.set(getattr(names, chance.choice(places)), "somebody else's", nx=True)

    with suppress(ExceptionGroup):
        flush_hits()
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: hits}
    assert get_hits(article) == hits
    moved = [*redis.scan_iter(f"{names.malformed}:*")]
    assert {redis.get(name) for name in moved} <= {b"somebody else's"}


@pytest.fixture
def near_and_far(redis, redis_buffer):
    """Objects with two hits each: one in the partition of a foreign value, and one in another."""
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(60))
    record_hits(articles)
    keys = [counter_key(article, counter="views") for article in articles]
    partitions = [key.partition(get_config().partitions) for key in keys]
    by_partition = dict(zip(partitions, articles, strict=True))
    (partition, near), (_, far) = [*by_partition.items()][:2]
    names = run_keys(partition, redis.info("server")["run_id"][:RUN_ID_LETTERS])
    flush_hits()
    record_hits([near, far])
    flush_hits()
    redis.set(names.pending, "somebody else's")
    return near, far


def test_value_in_one_partition_does_not_keep_pages_of_others_from_redis(near_and_far):
    """The server answers. And totals of the objects beside it are true, too."""
    near, far = near_and_far
    for hits in range(3, 7):
        assert record_hit(near) == Hit(True, None, hits)
        assert (get_hits(near), get_hits(far)) == (hits, 2)
    assert not get_buffer()._breaker.is_open
    flush_hits()
    assert record_hit(near).total == get_hits(near) == 7
    assert slot_sums([far]) == {far: 2}


def test_read_while_such_a_hit_is_written_changes_no_total(near_and_far):
    """Redis catches up after the COMMIT, and not before."""
    near, far = near_and_far
    slots = get_buffer()._slots
    write = slots.write

    def read_and_write(*args):
        assert get_hits(far) == 2
        return write(*args)

    with mock.patch.object(slots, "write", read_and_write):
        record_hit(near)
    assert get_hits(near) == 3
